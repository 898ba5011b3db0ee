"""A difference names the first statement whose value the new kernel does not have. Each fault is planted."""

from __future__ import annotations

import pytest

from tests.evaluate.support import SOFTMAX, gpu, npu, outcome
from tl2npu.kernel.expressions import code

NEW = SOFTMAX.replace("fragment", "shared").replace(
    "x[i, j] = T.exp(x[i, j] - top[i])",
    "x[i, j] = x[i, j] - top[i]\nfor i, j in T.Parallel(16, N):\n    x[i, j] = T.exp(x[i, j])",
)
LOAD, EXP, SUM = "T.copy(X[b * 16, 0], x)", "x[i, j] = T.exp(x[i, j] - top[i])", "T.reduce_sum(x, total, dim=1)"
MAX = SUM.replace("sum", "max")
STORE = "T.copy(x, Y[b * 16, 0])"


def parted(old: str, new: str) -> tuple[str, str, str | None]:
    """The tile, the old and the new statement."""
    found = outcome(gpu(old), npu(new))
    assert found.equal is False, found.why
    assert found.parting is not None
    new_node = found.parting.new
    return found.parting.name, code(found.parting.old), None if new_node is None else code(new_node)


@pytest.mark.parametrize(
    ("right", "wrong", "tile", "old", "new"),
    [
        ("X[b * 16, 0]", "X[b * 16, 1]", "x", LOAD, "T.copy(X[b * 16, 1], x)"),
        ("reduce_max(x, top", "reduce_min(x, top", "top", "T.reduce_max(x, top, dim=1)", "T.reduce_min(x, top, dim=1)"),
        ("x[i, j] - top[i]", "x[i, j] + top[i]", "x", EXP, "x[i, j] = T.exp(x[i, j])"),
        ("T.exp(x[i, j])", "T.abs(x[i, j])", "x", EXP, "x[i, j] = T.abs(x[i, j])"),
        ("T.reduce_sum(x, total, dim=1)", MAX, "total", SUM, MAX),
        ("T.reduce_sum(x, total, dim=1)", "pass", "total", SUM, None),
        ("/ total[i]", "* total[i]", "x", "x[i, j] = x[i, j] / total[i]", "x[i, j] = x[i, j] * total[i]"),
        (STORE, "T.copy(x, Y[b * 16, 1])", "Y", STORE, "T.copy(x, Y[b * 16, 1])"),
        (STORE, "pass", "Y", STORE, None),
    ],
)
def test_the_statement_of_a_fault(right: str, wrong: str, tile: str, old: str, new: str | None) -> None:
    assert outcome(gpu(SOFTMAX), npu(NEW)).equal
    assert right in NEW
    assert parted(SOFTMAX, NEW.replace(right, wrong)) == (tile, old, new)


def test_a_fault_of_a_later_turn() -> None:
    """The product is right in the first turn, and added to nothing in the second."""
    old = """
    x = T.alloc_shared((16, 16), "float32")
    c = T.alloc_fragment((16, 16), "float32")
    T.clear(c)
    for k in T.serial(2):
        T.copy(X[b * 16, k * 16], x)
        T.gemm(x, x, c, transpose_B=True)
    T.copy(c, Y[b * 16, 0])
    """
    new = old.replace("    T.clear(c)\n", "").replace("gemm(x, x, c, ", "gemm_v0(x, x, c, init={}, ")
    assert outcome(gpu(old), npu(new.replace("{}", "(k == 0)"))).equal
    tile, first, second = parted(old, new.replace("{}", "True"))
    assert (tile, first) == ("c", "T.gemm(x, x, c, transpose_B=True)")
    assert second == "T.gemm_v0(x, x, c, init=True, transpose_B=True)"


def test_tiles_that_the_new_kernel_lacks_are_passed_over() -> None:
    old = SOFTMAX.replace(STORE, 'y = T.alloc_fragment((16, N), "float32")\nT.copy(x, y)\nT.copy(y, Y[b * 16, 0])')
    assert outcome(gpu(old), npu(NEW)).equal
    assert parted(old, NEW.replace(STORE, "T.copy(x, Y[0, 0])"))[:2] == ("Y", "T.copy(y, Y[b * 16, 0])")


def test_blocks_in_another_order_tell_no_statement() -> None:
    wrong = NEW.replace("T.exp(x[i, j])", "T.abs(x[i, j])")
    found = outcome(gpu(SOFTMAX), npu(wrong).replace("T.ceildiv(M, 16)", "M // 16 + 1"))
    assert (found.equal, found.parting) == (False, None)
