"""Choices that guard what an element loads, for AscendNPU IR."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file
from tests.passes.npuir.test_from_gpu import LAUNCH, agree, matrix

PARAMS = 'A: T.Tensor((64, 64), "float32"), I: T.Tensor((64,), "int32"), B: T.Tensor((64, 64), "float32")'
TILE = 'x = T.alloc_fragment((32, 64), "float32")\n'
STORE = "T.copy(x, B[bx * 32, 0])\n"
PICKED = np.where(np.arange(64) % 3 == 0, -1, (np.arange(64) * 7) % 64).astype(np.int32)


def migrated(loop: str) -> str:
    return agree(gpu_file(PARAMS, TILE + loop + STORE, launch=LAUNCH), {"A": matrix(), "I": PICKED})


@pytest.mark.parametrize(
    "loop",
    [
        "for i, j in T.Parallel(32, 64):\n"
        "    x[i, j] = T.if_then_else(I[bx * 32 + i] >= 0, A[I[bx * 32 + i], j], 0.0)\n",
        "for i, j in T.Parallel(32, 64):\n"
        "    row = I[bx * 32 + i]\n"
        "    x[i, j] = T.if_then_else((row > -1) & (row < 60), A[row, j], 0.0)\n",
        "for i, j in T.Parallel(32, 64):\n    x[i, j] = T.if_then_else(bx * 32 + i > 0, A[bx * 32 + i - 1, j], 0.0)\n",
        "for i, j in T.Parallel(32, 64):\n"
        "    x[i, j] = T.if_then_else(bx * 32 + i < 2, -1.0, T.if_then_else(j > 3, A[bx * 32 + i - 2, j - 4], 0.5))\n",
    ],
)
def test_nothing_is_loaded_that_the_condition_forbids(loop: str) -> None:
    new = migrated(loop)
    assert "T.if_then_else" not in new
    assert "else:" in new
    assert "A_shared" not in new


@pytest.mark.parametrize("turn", ["bx", "(1 - k)"])
def test_a_choice_that_guards_nothing_stays_a_vector_operation(turn: str) -> None:
    loop = f"""
for k in T.serial(2):
    for i, j in T.Parallel(32, 64):
        x[i, j] = T.if_then_else(i >= j, A[{turn} * 32 + i, j], 0.5)
    T.copy(x, B[bx * 32, 0])
"""
    new = agree(gpu_file(PARAMS, TILE + loop, launch=LAUNCH), {"A": matrix(), "I": PICKED})
    assert "T.if_then_else(i >= j, A_shared[i, j], 0.5)" in new  # (1 - k) * 32 is at least 0
