"""Both arms of an ``if`` store one element of a tensor; rows and columns of one number, without ``%``."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

PARAMS = 'X: T.Tensor((24, 12), "float32"), Y: T.Tensor((24, 12), "float32")'
HEAD = """
for i in T.Parallel(64):
    idx = bx * 64 + i
    if idx < 24 * 12:
        row = idx // 12
        col = {col}
        {body}
"""
X = {"X": np.random.default_rng(3).standard_normal((24, 12)).astype(np.float32)}
LAUNCH = "T.Kernel(5, threads=128) as bx"
ARMS = (
    "if col > row - row // 12 * 12:\n            Y[row, col] = -1.0\n"
    "        else:\n            Y[row, col] = X[row, col]"
)
THREE = (
    "if col > row:\n            Y[row, col] = -1.0\n        elif col == row:\n            Y[row, col] = 0.0\n"
    "        else:\n            Y[row, col] = X[row, col]"
)


@pytest.mark.parametrize("col", ["idx - row * 12", "idx % 12", "idx - 12 * (idx // 12)"])
@pytest.mark.parametrize("body", [ARMS, "Y[row, col] = X[row, col] * 2.0"])
def test_numbered_elements(col: str, body: str) -> None:
    new = agree(gpu_file(PARAMS, HEAD.format(col=col, body=body), launch=LAUNCH), X)
    assert "Y_flat" in new


def test_three_arms() -> None:
    agree(gpu_file(PARAMS, HEAD.format(col="idx % 12", body=THREE), launch=LAUNCH), X)


def test_another_element_is_another_store() -> None:
    body = ARMS.replace("else:\n            Y[row, col]", "else:\n            Y[row, 0]")
    result = result_of(gpu_file(PARAMS, HEAD.format(col="idx % 12", body=body), launch=LAUNCH))
    assert [kernel.disposition for kernel in result.kernels] == ["refused"]
