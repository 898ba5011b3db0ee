"""Loads of so many rows as only the call tells: the instruction has those of the tile, and fills them first."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import load
from tl2npu.simulator.errors import SimulatorError

TEXT = """
import tilelang
import tilelang.language as T


@tilelang.jit
def kern(n=8):
    @T.prim_func
    def main({params}X: T.Tensor((30, 64), "{dtype}"), Y: T.Tensor((16, 64), "{dtype}")):
        with T.Kernel(1, {launch}) as (cid):
            x = T.alloc_shared((16, 64), "{dtype}")
            {fill}(x, 7)
            {statement}
            T.copy(x, Y)

    return main
"""
X = np.arange(1, 31)[:, None] * np.ones((1, 64))
NPU = {"launch": "threads=1, is_npu=True", "fill": "T.tile.fill"}
GPU = {"launch": "threads=128", "fill": "T.fill"}


def rows(statement: str, *given: int, dtype: str = "float32", **form: str) -> list[int]:
    """The first column of what 16 rows of sevens become."""
    text = TEXT.format(params="n: T.int32, " if given else "", dtype=dtype, statement=statement, **form)
    out = np.zeros((16, 64), dtype)
    load(text)["kern"]()(*given, X.astype(dtype), out)
    return [int(value) for value in out[:, 0]]


SOME = "T.copy(X[0:n, :], x[:n, :])"


def test_rows_behind_them() -> None:
    assert rows(SOME, 5, **GPU) == [1, 2, 3, 4, 5, *[7] * 11]
    assert rows(SOME, 5, **NPU) == [1, 2, 3, 4, 5, *[0] * 11]
    assert rows(SOME.replace("])", "], pad_value=3)"), 5, **NPU) == [1, 2, 3, 4, 5, *[3] * 11]
    assert rows(SOME, 16, **NPU) == list(range(1, 17))
    assert rows(SOME, **NPU) == [*range(1, 9), *[7] * 8]  # a constant: 8 of 8 rows


def test_what_begins_inside_fills_rows_behind_the_tile() -> None:
    with pytest.raises(SimulatorError, match="behind its end"):
        rows("T.copy(X[0:n, :], x[4 : 4 + n, :])", 5, **NPU)


def test_a_length_that_is_a_constant_after_all() -> None:
    assert rows("T.copy(X[cid : cid + 8, :], x[cid : cid + 8, :])", **NPU) == [*range(1, 9), *[7] * 8]
    assert rows("T.copy(X[0 : T.min(8, 9 - cid), :], x[0 : T.min(8, 9 - cid), :])", **NPU) == [*range(1, 9), *[7] * 8]
