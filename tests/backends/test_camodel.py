"""``--backend camodel`` on a stand-in for CANN's simulator. It proves the protocol only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.backends.support import HEAD, Machine, codes, said
from tl2npu.backends.device.camodel import environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are POSIX programs")

A2, A5 = "Ascend910B1", "Ascend950PR_9599"
SYMBOLIC = (
    HEAD
    + """
M = T.symbolic("M")


@tilelang.jit(out_idx=[1], pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
def double(N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M // 32, is_npu=True) as (cid, vid):
            a = T.alloc_ub((16, N), dtype)
            T.copy(A[cid * 32 + vid * 16, 0], a)
            T.tile.add(a, a, a)
            T.copy(a, C[cid * 32 + vid * 16, 0])

    return main
"""
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path).with_cann(A2, A5)


def test_both_kernels_run(machine: Machine) -> None:
    code, result = machine.verify("--backend", "camodel", "--platform", "A5")
    assert (code, codes(result)) == (0, [])
    assert result["kernels"][0]["verified"]["backend"] == "camodel"
    assert "add.main: compared with the old kernel on CANN's simulator" in result["notes"]


def test_extents_that_are_known_at_run_time_only(machine: Machine) -> None:
    args = ("--backend", "camodel", "--no-check", "--args", "double(N=64)", "--symbol", "M=96")
    code, result = machine.verify(*args, old=SYMBOLIC, new=SYMBOLIC, call=None)
    assert (code, codes(result)) == (0, [])


def test_tensors_that_the_compiler_adds(machine: Machine) -> None:
    code, result = machine.verify("--backend", "camodel", fault="auto-gm")
    assert (code, codes(result)) == (0, [])


def test_what_is_not_documented_is_said(machine: Machine) -> None:
    _, result = machine.verify("--backend", "camodel")
    assert any("for `--platform A5 --target pto` only" in note for note in result["notes"])
    _, result = machine.verify("--backend", "camodel", "--platform", "A5", "--target", "pto")
    assert not any("documents" in note for note in result["notes"])


def test_the_bound(machine: Machine) -> None:
    """Three tensors of 64 * 64 elements."""
    code, result = machine.verify("--backend", "camodel", "--max-elements", "12287")
    assert (code, codes(result)) == (1, ["TL906"])
    assert said(result, "TL906") == (
        "its tensors have 12288 elements, the limit is 12287; raise it with `--max-elements`"
    )
    code, _ = machine.verify("--backend", "camodel", "--max-elements", "12288")
    assert code == 0


def test_a_fault_of_the_model(machine: Machine) -> None:
    code, result = machine.verify("--backend", "camodel", fault="raise@new.py")
    assert (code, codes(result)) == (1, ["TL940"])
    assert "fails on CANN's simulator: error 507015 (AI Core exception)" in said(result, "TL940")


def test_the_compiler_refuses(machine: Machine) -> None:
    code, result = machine.verify("--backend", "camodel", fault="uncompiled@new.py")
    assert (code, codes(result)) == (1, ["TL942"])


def test_without_cann(machine: Machine) -> None:
    del machine.environment["ASCEND_HOME_PATH"]
    code, result = machine.verify("--backend", "camodel")
    assert (code, codes(result)) == (1, ["TL912"])
    assert "there is no CANN" in said(result, "TL912")


def test_without_the_library_of_the_platform(tmp_path: Path) -> None:
    code, result = Machine(tmp_path).with_cann(A2).verify("--backend", "camodel", "--platform", "A5")
    assert (code, codes(result)) == (1, ["TL912"])
    assert "no libruntime_camodel.so for platform A5" in said(result, "TL912")


def test_the_environment_of_the_child(tmp_path: Path) -> None:
    """As section 2.4.5 of TileLang-Ascend's programming guide lists it."""
    (tmp_path / "x86_64-linux" / "lib64").mkdir(parents=True)
    library = tmp_path / "tools" / "simulator" / A5 / "lib"
    found = environment(tmp_path, library, "A5", tmp_path / "logs", {"LD_LIBRARY_PATH": "/mine"})
    assert found.pop("LD_LIBRARY_PATH") == f"{library}:{tmp_path}/x86_64-linux/lib64:/mine"
    assert found == {
        "ASCEND_HOME_PATH": str(tmp_path),
        "TL_RUN_MODE": "sim",
        "TL_PLATFORM": "A5",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "CAMODEL_LOG_PATH": str(tmp_path / "logs"),
    }
