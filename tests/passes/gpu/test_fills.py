"""Fills in the NPU's form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.stage import after, blocked, same
from tests.passes.gpu.support import gpu_file
from tl2npu.passes.gpu import fills

PARAMS = 'A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")'
INPUT = {"A": np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)}


def kernel(body: str, dtype: str = '"float32"', **more: str) -> str:
    lines = f"a = T.alloc_shared((8, 16), {dtype})\nT.copy(A[bx * 8, 0], a)\n{body}\nT.copy(a, B[bx * 8, 0])"
    return gpu_file(PARAMS.replace('"float32"', dtype), lines, **more)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("T.clear(a)", "T.tile.fill(a, 0.0)"),
        ("T.fill(a, 0)", "T.tile.fill(a, 0.0)"),
        ("T.fill(a, value=3.5)", "T.tile.fill(a, 3.5)"),
        ("T.fill(buffer=a, value=-1)", "T.tile.fill(a, -1.0)"),
        ('T.fill(a, -T.infinity("float32"))', 'T.tile.fill(a, -T.infinity("float32"))'),
        ("T.fill(a, float('-inf'))", 'T.tile.fill(a, -T.infinity("float32"))'),
        ("T.fill(a, -(2**30))", "T.tile.fill(a, -(2**30))"),
        ("T.fill(a, bx)", "T.tile.fill(a, bx)"),
        ("T.clear(a[2, :])", "T.tile.fill(a[2, :], 0.0)"),
        ("T.fill(a[2:6, 0:16], 1)", "T.tile.fill(buffer=a[2:6, 0:16], value=1.0)"),
        ("T.fill(a[3, 8:16], 1)", "T.tile.fill(buffer=a[3, 8:16], value=1.0)"),
    ],
)
def test_fills(call: str, expected: str) -> None:
    assert expected in same(kernel(call), INPUT, fills.rewrite)


def test_an_element_is_stored() -> None:
    """An element is a region of one element, not a start index (fill_op.py:fill)."""
    assert "    a[3, 8] = 1.0\n" in after(kernel("T.fill(a[3, 8], 1)"), fills.rewrite)


def test_the_type_of_a_parameter_decides() -> None:
    text = kernel("T.clear(a)", dtype="dtype", args='dtype="int32"')
    assert "T.tile.fill(a, 0)\n" in after(text, fills.rewrite)


def test_other_spellings() -> None:
    text = kernel("T.clear(a)  # start at zero").replace(
        "import tilelang.language as T", "import tilelang.language as tl"
    )
    new = after(text.replace("T.", "tl."), fills.rewrite)
    assert "tl.tile.fill(a, 0.0)  # start at zero\n" in new


def test_a_second_time_nothing_changes() -> None:
    new = after(kernel("T.clear(a)"), fills.rewrite)
    assert after(new, fills.rewrite) == new


@pytest.mark.parametrize("call", ["T.clear(a[:, 0:8])", "T.fill(a[0:4, 0:8], 1)", "T.clear(B)", "T.fill(a, A)"])
def test_refusals(call: str) -> None:
    assert blocked(kernel(call), fills.rewrite) == ("TL161", 12)


def test_the_cube_core_fills_nothing() -> None:
    text = kernel('c = T.alloc_fragment((8, 16), "float32")\nT.clear(c)')
    assert blocked(text, fills.rewrite) == ("TL161", 13)
