"""``--backend npu`` from the command line, on a stand-in for a machine with an NPU. It proves the protocol only."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.backends.support import CALL, HEAD, NEW, OLD, Machine, codes, said

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(os.name != "posix", reason="the stand-ins are POSIX programs"),
]

GPU = (
    HEAD
    + """

@tilelang.jit(out_idx=[2])
def add(M, N, dtype="float16"):
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
"""
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_both_kernels_run_on_the_npu(machine: Machine) -> None:
    code, result = machine.verify(fresh=True)
    assert code == 0
    assert result["kernels"][0]["verified"] == {"backend": "npu", "calls": 1, "max_error": 0.0}
    assert "add.main: compared with the old kernel on the NPU" in result["notes"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float32", "int8", "uint16"])
def test_element_types_travel_as_bits(machine: Machine, dtype: str) -> None:
    """With copies, which no type of element keeps from running."""
    old, new = (re.sub(r" *T\.tile\.add.*\n", "", text) for text in (OLD, NEW))
    call = f"add(M=64, N=64, dtype='{dtype}')"
    code, result = machine.verify("--no-check", "--args", call, old=old, new=new, call=None)
    assert (code, codes(result)) == (0, [])


def test_a_gpu_kernel_is_not_run_on_an_npu(machine: Machine) -> None:
    code, result = machine.verify(old=GPU, fault="die@old.py")
    assert (code, codes(result)) == (0, [])
    assert any("it is a GPU kernel" in note for note in result["notes"])


def test_the_launches_of_a_script(machine: Machine) -> None:
    script = "\nimport numpy as np\n\nx = np.ones((64, 64), np.float16)\nassert (add(64, 64)(x, x) == 2).all()\n"
    code, result = machine.verify(old=OLD + script, new=NEW, call=None)
    assert (code, codes(result)) == (0, [])
    assert result["launches"][0]["call"] == "add(M=64, N=64, dtype='float16')"


def test_results_that_differ(machine: Machine) -> None:
    code, result = machine.verify(fault="wrong@new.py")
    assert (code, codes(result)) == (1, ["TL907"])
    assert said(result, "TL907").startswith("C[0, 0] is ")


def test_the_device_and_not_the_simulator_is_the_reference(machine: Machine) -> None:
    """Both kernels give the same on the device, and something else than the simulator's run of the old one."""
    code, result = machine.verify(fault="wrong")
    assert (code, codes(result)) == (0, [])
    assert any(note.startswith("add.main: the old kernel also differs: C[0, 0] is ") for note in result["notes"])


def test_the_process_dies(machine: Machine) -> None:
    code, result = machine.verify(fault="die@new.py")
    assert (code, codes(result)) == (1, ["TL940"])
    text = said(result, "TL940")
    assert "signal 6 (SIGABRT)" in text
    assert "507015 (AI Core exception, The MTE instruction reads out of range)" in text


def test_the_runtime_raises(machine: Machine) -> None:
    code, result = machine.verify(fault="raise@new.py")
    assert (code, codes(result)) == (1, ["TL940"])
    assert "the new kernel fails on the NPU: error 507015 (AI Core exception" in said(result, "TL940")


def test_it_hangs(machine: Machine) -> None:
    code, result = machine.verify("--timeout", "4", fault="hang@new.py")
    assert (code, codes(result)) == (1, ["TL941"])
    assert said(result, "TL941") == "the new kernel hangs on the NPU: no result within 4 seconds"


def test_not_a_number(machine: Machine) -> None:
    code, result = machine.verify(fault="nan@new.py")
    assert (code, codes(result)) == (1, ["TL944"])
    expected = "2 of 4096 elements of C are NaN where the old kernel has numbers, first C[0, 3]"
    assert said(result, "TL944") == expected


def test_runs_that_differ(machine: Machine) -> None:
    code, result = machine.verify(fault="differ@new.py")
    assert (code, codes(result)) == (1, ["TL943"])
    assert "runs 1 and 2 on the same inputs differ in 1 of 4096 elements of C" in said(result, "TL943")
    assert "first in C[0, 7]" in said(result, "TL943")


def test_one_run_cannot_differ(machine: Machine) -> None:
    """The stand-in changes all runs of the process but its first, so the further draws differ from the old kernel."""
    code, result = machine.verify("--repeat", "1", fault="differ@new.py")
    assert (code, codes(result)) == (1, ["TL907"])


def test_runs_may_differ_where_those_of_the_old_kernel_do(machine: Machine) -> None:
    code, result = machine.verify("--rtol", "10", fault="differ")
    assert (code, codes(result)) == (0, [])
    assert any("so does the old kernel" in note for note in result["notes"])


def test_the_compiler_refuses(machine: Machine) -> None:
    code, result = machine.verify(fault="uncompiled@new.py")
    assert (code, codes(result)) == (1, ["TL942"])
    assert said(result, "TL942").endswith(":41:9: error: no matching function for call to 'copy_gm_to_ub'")


def test_the_front_end_refuses(machine: Machine) -> None:
    code, result = machine.verify(fault="rejected@new.py")
    assert (code, codes(result)) == (1, ["TL942"])
    assert "ValueError: Check failed: Buffer overflow in shared memory: 262144 bytes" in said(result, "TL942")


def test_the_compiler_dies(machine: Machine) -> None:
    code, result = machine.verify(fault="compiler-dies@new.py")
    assert (code, codes(result)) == (1, ["TL942"])
    assert "died while the new kernel was compiled: signal 11 (SIGSEGV)" in said(result, "TL942")


@pytest.mark.parametrize("fault", ["die", "raise", "uncompiled", "compiler-dies"])
def test_an_old_kernel_that_fails_is_no_fault_of_the_new_one(machine: Machine, fault: str) -> None:
    code, result = machine.verify(fault=f"{fault}@old.py")
    assert (code, codes(result)) == (0, [])
    assert any("on the tl2npu simulator, not on the NPU: " in note for note in result["notes"])


def test_findings_of_the_sanitizer(machine: Machine) -> None:
    code, result = machine.verify("--sanitize", "racecheck", fault="finding")
    assert (code, codes(result)) == (1, ["TL945"])
    expected = "Potential RAW hazard detected at UB in main_kernel on device 0 (2 times)"
    assert said(result, "TL945") == f"msSanitizer (racecheck): {expected}"


def test_a_sanitizer_without_findings(machine: Machine) -> None:
    code, result = machine.verify("--sanitize", "memcheck", fault="finding")
    assert (code, codes(result)) == (0, [])
    assert not any("rejects its options" in note for note in result["notes"])


def test_a_compiler_that_cannot_instrument(machine: Machine) -> None:
    code, result = machine.verify("--sanitize", "memcheck", fault="uninstrumented")
    assert (code, codes(result)) == (0, [])
    assert any("only transfers from and to global memory were checked" in note for note in result["notes"])


def test_a_sanitizer_that_tells_nothing_proves_nothing(machine: Machine) -> None:
    (machine.folder / "bin" / "mssanitizer").write_text("#!/bin/sh\necho no device\nexit 0\n", encoding="utf-8")
    code, result = machine.verify("--sanitize", "memcheck")
    assert (code, codes(result)) == (1, ["TL906"])
    assert "msSanitizer (memcheck) reported nothing" in said(result, "TL906")


def test_time(machine: Machine) -> None:
    """The stand-in measures 10 + n * n microseconds for launch n of 10: the median is that of launches 4 and 5."""
    code, result = machine.verify("--time")
    assert (code, codes(result)) == (0, [])
    expected = "add.main: 30.50 us, the old kernel 30.50 us (median of 10 launches, msprof op)"
    assert expected in result["notes"]


def test_a_profiler_that_refuses_and_ends_with_0(machine: Machine) -> None:
    code, result = machine.verify("--time", fault="refuses")
    assert (code, codes(result)) == (0, ["TL946", "TL946"])
    assert "[ERROR] The output folder is writable by others" in said(result, "TL946")


def test_without_torch_npu(machine: Machine) -> None:
    code, result = machine.verify("--python", sys.executable)
    assert (code, codes(result)) == (1, ["TL912"])
    assert "`tl2npu doctor` says" in said(result, "TL912")


def test_without_a_device(machine: Machine) -> None:
    code, result = machine.verify("--device-id", "3", fault="no-device")
    assert (code, codes(result)) == (1, ["TL912"])
    assert "torch_npu sees none among ASCEND_RT_VISIBLE_DEVICES=3" in said(result, "TL912")


def test_an_interpreter_that_is_not_there(machine: Machine) -> None:
    code, result = machine.verify("--python", "/nowhere/python")
    assert (code, codes(result)) == (1, ["TL912"])
    assert "/nowhere/python cannot be started" in said(result, "TL912")


def test_a_tool_that_is_not_there(machine: Machine) -> None:
    (machine.folder / "bin" / "msprof").unlink()
    code, result = machine.verify("--time")
    assert (code, codes(result)) == (1, ["TL912"])


def test_a_new_file_that_cannot_be_loaded_there(machine: Machine) -> None:
    new = "import sys\nif 'tl2npu.verify' not in sys.modules:\n    import not_there\n" + NEW
    code, result = machine.verify(new=new, fresh=True)
    assert (code, codes(result)) == (1, ["TL906"])
    assert "ModuleNotFoundError: No module named 'not_there'" in said(result, "TL906")


def test_migrate_takes_back_what_fails(machine: Machine) -> None:
    script = "\n\nimport numpy as np\n\nx = np.ones((64, 64), np.float16)\nassert (add(64, 64)(x, x) == 2).all()\n"
    (machine.folder / "k.py").write_text(OLD + script, encoding="utf-8")
    done = machine.command("migrate", "--diff", "--verify", "--backend", "npu", "k.py")
    assert "+" in done.stdout
    assert "threads=2" in done.stdout
    assert "npu" in done.stdout + done.stderr
    done = machine.command("migrate", "--diff", "--verify", "--backend", "npu", "k.py", fault="nan")
    assert "TL944" not in done.stdout + done.stderr  # so does the old kernel
    done = machine.command("migrate", "--diff", "--verify", "--backend", "npu", "k.py", fault="nan-if-developer")
    assert "TL944" in done.stdout + done.stderr
    assert "threads=2" not in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("--backend", "sim", "--device-id", "1"),
        ("--backend", "sim", "--time"),
        ("--backend", "camodel", "--sanitize", "memcheck"),
        ("--backend", "npu", "--max-elements", "5"),
        ("--backend", "compile", "--repeat", "2"),
        ("--backend", "npu", "--arithmetic", "algebraic"),
    ],
)
def test_options_that_do_not_fit(machine: Machine, args: tuple[str, ...]) -> None:
    (machine.folder / "old.py").write_text(OLD, encoding="utf-8")
    done = machine.command("verify", "old.py", "--args", CALL, *args, python="")
    assert done.returncode == 2
    assert "goes with --backend" in done.stderr
