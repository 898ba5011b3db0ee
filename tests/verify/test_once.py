"""Findings of faulty runs: one for one cause, and a help that fits it; how an eager kernel is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.verify.support import HEAD, SCALE, by_calls
from tl2npu.codes import finding
from tl2npu.report.verify import text
from tl2npu.results import Diagnostic
from tl2npu.verify.judge import at_once
from tl2npu.verify.settings import Call, UsageError

ACCESS = "the new kernel: Misaligned access at UB: PIPE_{pipe} Access at k.py:{line} in block 0 (aiv0): "
STRIDE = "the row stride of {tile} is {size} bytes, not a multiple of 32 ({often} times)"
KERNEL = HEAD + SCALE
EAGER = """import tilelang
import tilelang.language as T


@tilelang.jit
def half(A, factor=0.5):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(M, threads=1, is_npu=True) as (row):
        a = T.alloc_shared((N,), "float32")
        T.copy(A[row, 0], a)
        T.tile.mul(a, a, factor)
        T.copy(a, B[row, 0])
    return B
"""


def access(pipe: str, line: int, tile: str, size: int = 400, often: int = 4) -> Diagnostic:
    message = ACCESS.format(pipe=pipe, line=line) + STRIDE.format(tile=tile, size=size, often=often)
    return finding("TL908", 8, message, "main")


def test_accesses_that_are_wrong_for_one_reason() -> None:
    """Whatever pipe reads or writes the tiles: rows of N elements are the cause."""
    found = [access("MTE2", 19, "a"), access("V", 22, "q", often=8), access("V", 26, "a"), access("MTE3", 26, "a")]
    (one,) = at_once(found)
    assert one == replace(found[0], message=f"{found[0].message}; the same at lines 22 (q), 26")
    (two,) = at_once(found[:1] + found[2:])
    assert two.message.endswith("times); the same at line 26")


def test_other_reasons_are_other_findings() -> None:
    race = finding("TL908", 8, "the new kernel: Potential RAW hazard at UB: PIPE_V Write of x at k.py:17", "main")
    found = [access("V", 19, "a"), access("V", 19, "a", size=80), race, replace(access("V", 20, "a"), kernel="other")]
    assert at_once(found) == found
    assert at_once([*found, *found]) == found


def test_a_help_is_shown_once() -> None:
    """Of findings below one another."""
    said = (access("V", 19, "a"), access("V", 19, "a", size=80), finding("TL906", 8, "x", "main"), access("V", 1, "b"))
    shown = text(replace(by_calls(KERNEL, KERNEL, Call("scale", {"rows": 128})), diagnostics=said))
    assert [line for line in shown.split("\n") if "help:" in line and "synchronisation" in line] == [
        f"    help: {said[0].help}"
    ] * 2


@pytest.mark.parametrize(
    ("new", "said"),
    [("rows = bound(rows)", "NameError: name 'bound'"), ("rows = rows + 'x'", "TypeError: unsupported operand")],
)
def test_python_that_fails_is_no_access(new: str, said: str) -> None:
    head = next(line for line in SCALE.split("\n") if line.startswith("def scale("))
    result = by_calls(KERNEL, KERNEL.replace(head, f"{head}\n    {new}", 1), Call("scale", {"rows": 128}))
    (only,) = result.diagnostics
    assert only.code == "TL908"
    assert said in only.message
    assert only.help.startswith("mend the Python that raises it")


@pytest.mark.parametrize(
    "arguments", [{"0": 37, "1": 64}, {"0": (37, 64)}, {"A": (37, 64)}, {"A": 37, "factor": 1.0}], ids=str
)
def test_an_eager_kernel_is_given_sizes_by_name(arguments: dict[str, object]) -> None:
    result = by_calls(EAGER, EAGER, Call("half", arguments))
    message = " ".join(d.message for d in result.diagnostics)
    assert "`A` is a tensor, and the call gives" in message
    assert "leave tensors out and give the sizes by name, as in `half(M=..., N=...)`" in message
    assert not result.ok


def test_more_arguments_than_an_eager_kernel_has() -> None:
    with pytest.raises(UsageError, match=r"half takes \(A, factor=0.5\); leave tensors out and give their sizes by"):
        by_calls(EAGER, EAGER, Call("half", {"0": 37, "1": 64, "2": 0.5}))
