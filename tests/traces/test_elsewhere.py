"""``--reference`` with ``--backend npu``, ``camodel`` and ``compile``, on stand-ins. They prove the protocol only."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.support import HEAD, NEW, ROOT, Machine, codes, said
from tests.verify import compiler_stand_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are POSIX programs")

GPU = (
    HEAD
    + """
import numpy as np


@tilelang.jit(out_idx=[2])
def add(M, N, dtype="float16", stages=2):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M // 32, threads=128) as bx:
            a = T.alloc_fragment((32, N), dtype)
            b = T.alloc_fragment((32, N), dtype)
            T.copy(A[bx * 32, 0], a)
            T.copy(B[bx * 32, 0], b)
            for i, j in T.Parallel(32, N):
                a[i, j] = a[i, j] + b[i, j]
            T.copy(a, C[bx * 32, 0])

    return main


if __name__ == "__main__":
    for rows, dtype in ((64, "float16"), (96, "float32")):
        x, y = np.random.standard_normal((2, rows, 64)).astype(dtype)
        assert (add(rows, 64, dtype)(x, y) == x + y).all()
"""
)
CAMODEL = ("--backend", "camodel", "--platform", "A5")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two launches of a GPU kernel; the last parameter is one that no new kernel has."""
    machine = Machine(tmp_path_factory.mktemp("gpu"))
    (machine.folder / "gpu.py").write_text(GPU)
    for trace, bound in (("trace", "1M"), ("sampled", "90K"), ("hashes", "16")):
        done = machine.command("record", "gpu.py", "-o", trace, "--on", "sim", "--max-bytes", bound, python="")
        assert done.returncode == 0, done.stderr
    return machine.folder


@pytest.fixture
def machine(tmp_path: Path, recorded: Path) -> Machine:
    for name in ("trace", "sampled", "hashes"):
        shutil.copytree(recorded / name, tmp_path / name)
    (tmp_path / "gpu.py").write_text(GPU)
    return Machine(tmp_path).with_cann("Ascend910B1", "Ascend950PR_9599")


def verify(
    machine: Machine, *args: str, new: str = NEW, trace: str = "trace", fault: str = "", **named: Any
) -> tuple[int, dict[str, Any]]:
    """``tl2npu verify new.py --reference TRACE`` on the machine."""
    (machine.folder / "new.py").write_text(new)
    backend = () if "--backend" in args else ("--backend", "npu")
    given = ("verify", "new.py", "--reference", trace, "--no-check", "--format", "json", *backend, *args)
    done = machine.command(*given, fault=fault, **named)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("args", [("--backend", "npu"), CAMODEL])
def test_new_kernels_agree_with_what_was_recorded(machine: Machine, args: tuple[str, ...]) -> None:
    code, result = verify(machine, *args)
    assert (code, codes(result)) == (0, [])
    assert result["kernels"][0]["verified"] == {"backend": args[1], "calls": 2, "max_error": 0.0}
    assert result["reference"] == "the trace trace (tl2npu simulator, A2)"


def test_what_counts_is_what_was_recorded(machine: Machine) -> None:
    """A trace that holds other numbers: the simulator, and the device, compute what the kernel says."""
    manifest = json.loads((machine.folder / "trace" / "manifest.json").read_text())
    path = machine.folder / "trace" / manifest["launches"][1]["data"]
    with np.load(path) as file:
        arrays = dict(file)
    arrays["after.C"][5, 7] += 1
    np.savez(path, **arrays)
    tensor = next(t for t in manifest["launches"][1]["tensors"] if t["name"] == "C")
    tensor["after"]["sha256"] = hashlib.sha256(arrays["after.C"].tobytes()).hexdigest()
    (machine.folder / "trace" / "manifest.json").write_text(json.dumps(manifest))
    code, result = verify(machine)
    assert (code, codes(result)) == (1, ["TL907"])
    assert said(result, "TL907").startswith("C[5, 7] is ")


FAULTS = {
    "wrong": ("TL907", "C[0, 0] is "),
    "nan": ("TL944", "elements of C are NaN where the old kernel has numbers"),
    "die": ("TL940", "signal 6 (SIGABRT)"),
    "differ": ("TL943", "runs 1 and 2 on the same inputs differ"),
    "uncompiled": ("TL942", "does not compile"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(machine: Machine, fault: str) -> None:
    code, result = verify(machine, fault=fault)
    expected, text = FAULTS[fault]
    assert (code, result["kernels"][0]["status"]) == (1, "failed")
    assert expected in codes(result)
    assert text in said(result, expected)


def test_a_wrong_kernel(machine: Machine) -> None:
    code, result = verify(machine, new=NEW.replace("T.tile.add(a, a, b)", "T.tile.sub(a, a, b)"))
    assert (code, set(codes(result))) == (1, {"TL907"})


def test_launches_whose_outputs_are_samples(machine: Machine) -> None:
    launch = json.loads((machine.folder / "sampled" / "manifest.json").read_text())["launches"][1]
    assert [t["after"]["sampled"] for t in launch["tensors"] if t["role"] == "out"] == [4096]
    code, result = verify(machine, trace="sampled")
    assert (code, result["kernels"][0]["verified"]["calls"]) == (0, 2)


@pytest.mark.parametrize("args", [("--backend", "npu"), CAMODEL])
def test_launches_of_which_hashes_were_kept_are_not_verified(machine: Machine, args: tuple[str, ...]) -> None:
    code, result = verify(machine, *args, trace="hashes")
    assert (code, set(codes(result))) == (1, {"TL906"})
    assert "a launch was recorded without its inputs" in said(result, "TL906")
    assert result["kernels"][0]["status"] == "not verified"


def test_a_launch_that_is_too_large_for_the_simulator_of_cann(machine: Machine) -> None:
    code, result = verify(machine, *CAMODEL, "--max-elements", "12288")
    assert (code, codes(result)) == (1, ["TL906"])
    assert "its tensors have 18432 elements, the limit is 12288" in said(result, "TL906")


def test_old_and_new_and_the_migration(machine: Machine) -> None:
    (machine.folder / "new.py").write_text(NEW)
    for files in (("gpu.py", "new.py"), ("gpu.py",)):
        args = ("--reference", "trace", "--backend", "npu", "--no-check")
        done = machine.command("verify", *files, *args, "--csv", "figures.csv", fault="die@gpu.py" * (len(files) > 1))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "against the trace trace (tl2npu simulator, A2) on npu; 1 of 1 kernel agrees, 2 launches" in done.stdout
        assert len((machine.folder / "figures.csv").read_text().splitlines()) == 3


def test_a_standard(machine: Machine) -> None:
    code, result = verify(machine, "--standard", "cann-mere")
    assert (code, result["standard"]) == (0, "cann-mere")
    code, result = verify(machine, "--standard", "cann-mere", fault="nan")
    assert (code, "does not meet the standard cann-mere" in said(result, "TL907")) == (1, True)


def test_where_there_is_no_npu(machine: Machine) -> None:
    code, result = verify(machine, fault="no-device")
    assert (code, codes(result)) == (1, ["TL912"])


def test_element_types_that_numpy_lacks(machine: Machine) -> None:
    """bfloat16, which the vector core can copy only."""
    gpu = GPU.replace("a[i, j] + b[i, j]", "a[i, j]").replace("x + y", "x").replace("float32", "bfloat16")
    (machine.folder / "bits.py").write_text("import ml_dtypes\n" + gpu)
    done = machine.command("record", "bits.py", "-o", "bits", "--on", "sim", python="")
    assert done.returncode == 0, done.stderr
    new = NEW.replace("            T.tile.add(a, a, b)\n", "")
    assert verify(machine, new=new, trace="bits")[0] == 0
    code, result = verify(machine, new=new.replace("copy(A[", "copy(B["), trace="bits")
    assert (code, codes(result)) == (1, ["TL907", "TL907"])


def test_a_trace_of_a_gpu(machine: Machine) -> None:
    """What a real GPU computed, and the migrated kernel on the stand-in for an NPU."""
    trace, folder = ROOT / "tests" / "traces" / "h100" / "softmax_exp", ROOT / "fixtures" / "gpu" / "softmax_exp"
    text = (folder / "after.py").read_text()
    code, result = verify(machine, new=text, trace=str(trace))
    assert (code, codes(result)) == (0, [])
    code, result = verify(machine, new=text.replace("= T.exp(x[i, j])", "= T.exp(x[i, j] * 1.01)"), trace=str(trace))
    assert (code, codes(result)) == (1, ["TL907"])


@pytest.fixture
def compiler(machine: Machine) -> Machine:
    """The same traces, where only the compiler is."""
    installed = compiler_stand_in.write(machine.folder / "installed")
    machine.environment |= {"PYTHONPATH": os.pathsep.join((str(ROOT), str(installed)))}
    return machine


def compiled(machine: Machine, *args: str, **named: Any) -> tuple[int, dict[str, Any]]:
    return verify(machine, "--backend", "compile", *args, python="", **named)


@pytest.mark.parametrize("trace", ["trace", "hashes"])
def test_the_compiler_is_given_the_recorded_arguments(compiler: Machine, trace: str) -> None:
    code, result = compiled(compiler, trace=trace)
    assert (code, codes(result)) == (0, [])
    assert result["kernels"][0]["verified"] == {"backend": "compile", "calls": 2, "max_error": None}


def test_the_compiler_rejects(compiler: Machine) -> None:
    code, result = compiled(compiler, new=NEW.replace("T.tile.add", "T.tile.lerp"))
    assert (code, set(codes(result))) == (1, {"TL930"})
    assert said(result, "TL930").endswith("for add(M=64, N=64, dtype='float16')")


def test_the_compiler_and_a_kernel_that_the_file_lacks(compiler: Machine) -> None:
    code, result = compiled(compiler, new=NEW.replace("def add", "def plus"))
    assert (code, result["kernels"][-1]["status"]) == (1, "not verified")
    assert any("it has no factory 'add'" in found["message"] for found in result["diagnostics"])


def test_the_compiler_and_arguments_that_were_not_recorded(compiler: Machine) -> None:
    manifest = json.loads((compiler.folder / "trace" / "manifest.json").read_text())
    for launch in manifest["launches"]:
        launch |= {"arguments": None, "arguments_missing": "one is a function"}
    (compiler.folder / "trace" / "manifest.json").write_text(json.dumps(manifest))
    code, result = compiled(compiler, new=NEW + "\nraise SystemExit(3)  # as no script either\n")
    assert code == 1
    why = "the arguments of add were not recorded: one is a function"
    assert {found["message"] for found in result["diagnostics"]} == {why}


def test_the_compiler_says_what_it_was_given(compiler: Machine) -> None:
    (compiler.folder / "new.py").write_text(NEW)
    args = ("verify", "gpu.py", "new.py", "--reference", "trace", "--no-check", "--backend", "compile")
    done = compiler.command(*args, python="")
    assert done.returncode == 0, done.stdout + done.stderr
    text = "accepted: new.py by the compiler, called as in the trace trace (tl2npu simulator, A2); 1 of 1 kernel"
    assert text in done.stdout


@pytest.mark.parametrize("option", [("--standard", "msprobe"), ("--golden", "fp64"), ("--rtol", "1"), ("--csv", "x")])
def test_the_compiler_has_no_numbers(compiler: Machine, option: tuple[str, str]) -> None:
    done = compiler.command("verify", "gpu.py", "--reference", "trace", "--backend", "compile", *option, python="")
    assert done.returncode == 2
    assert "Error: --backend compile has no numbers for " in done.stderr


def test_what_does_not_go_with_a_trace(machine: Machine) -> None:
    done = machine.command("verify", "gpu.py", "--reference", "trace", "--backend", "npu", "--args", "add(M=64, N=64)")
    assert (done.returncode, "Error: --reference goes without --args" in done.stderr) == (2, True)
