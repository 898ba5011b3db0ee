"""Columns that keep the rows of a tile in different banks of a GPU go."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file
from tl2npu.passes.gpu.memory.trimmed import trim

PARAMS = 'X: T.Tensor((64, H), "float32"), Y: T.Tensor((64, H), "float32")'
BODY = """
x = T.alloc_shared((32, {width}), "float32")
y = T.alloc_fragment((H, 32), "float32")
T.copy(X[bx * 32, 0], x[:, :H])
for i, j in T.Parallel(H, 32):
    y[i, j] = x[j, i]
for i, j in T.Parallel(H, 32):
    x[j, i] = y[i, j] * 2.0
{more}
T.copy(x[:, :H], Y[bx * 32, 0])
"""


def file(width: str, more: str = "") -> str:
    return gpu_file(PARAMS, BODY.format(width=width, more=more), args="H=16")


@pytest.mark.parametrize("width", ["H + 1", "1 + H", "H + 8"])
def test_nothing_touches_them(width: str) -> None:
    assert after(trim, file(width)) == file("H")
    agree(file(width), {"X": np.random.default_rng(2).standard_normal((64, 16)).astype(np.float32)})


@pytest.mark.parametrize(
    "more",
    ["T.clear(x)", "x[0, H] = 0.0", "for j in T.Parallel(H + 1):\n    x[0, j] = 0.0", "T.copy(x[:, 1:], x[:, :H])"],
)
def test_something_does(more: str) -> None:
    assert after(trim, file("H + 1", more)) == file("H + 1", more)


def test_a_size_without_a_sum() -> None:
    assert after(trim, file("17")) == file("17")
