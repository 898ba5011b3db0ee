"""Tiles with an axis for the stages of a pipeline: one stage where each iteration loads it first, as it is else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

PARAMS = 'A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32")'
RNG = np.random.default_rng(5)
INPUTS = {
    "A": RNG.standard_normal((64, 96)).astype(np.float16),
    "B": RNG.standard_normal((96, 64)).astype(np.float16),
}


def kernel(loop: str, shape: str = "(2, 64, 32)") -> str:
    body = f"""
a = T.alloc_shared({shape}, "float16")
b = T.alloc_shared((2, 32, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.clear(c)
for k in T.serial(3):
{loop}
T.copy(c, C[0, 0])
"""
    return gpu_file(PARAMS, body, launch="T.Kernel(1, threads=128) as bx")


LOOP = """
    T.copy(A[0, k * 32], a[{0}, :, :])
    T.copy(B[k * 32, 0], b[{0}, :, :])
    T.gemm(a[{0}, :, :], b[{0}, :, :], c)
"""


@pytest.mark.parametrize("loop", [LOOP.format("k % 2"), "    s = k % 2" + LOOP.format("s"), LOOP.format("(k + 1) % 2")])
def test_one_stage_serves_all_iterations(loop: str) -> None:
    new = agree(kernel(loop), INPUTS)
    assert "a = T.alloc_shared((64, 32), " in new
    assert "b = T.alloc_shared((32, 64), " in new


def test_elements_of_a_stage() -> None:
    loop = LOOP.format("k % 2").replace(
        "    T.copy(A[0, k * 32], a[k % 2, :, :])",
        "    for i, j in T.Parallel(64, 32):\n        a[k % 2, i, j] = A[i, k * 32 + j] * 2.0",
    )
    assert "a = T.alloc_shared((64, 32), " in agree(kernel(loop), INPUTS)


@pytest.mark.parametrize(
    "loop",
    [
        # the stage of the iteration before
        "    T.copy(A[0, k * 32], a[(k + 1) % 2, :, :])"
        + LOOP.format("k % 2").replace("T.copy(A[0, k * 32]", "T.copy(A[0, 0]"),
        # not loaded in every iteration
        LOOP.format("k % 2").replace("    T.copy(A[0, k * 32]", "    if k < 2:\n        T.copy(A[0, k * 32]"),
        # loaded in part
        LOOP.format("k % 2").replace("a[k % 2, :, :])\n    T.copy(B", "a[k % 2, 0:32, :])\n    T.copy(B"),
        # a loop of its own loads the stages
        "    for s in T.serial(2):\n        T.copy(A[0, s * 32], a[s, :, :])\n    for s in T.serial(2):\n"
        "        T.copy(B[s * 32, 0], b[s, :, :])\n        T.gemm(a[s, :, :], b[s, :, :], c)",
    ],
)
def test_a_stage_that_keeps_a_value(loop: str) -> None:
    result = result_of(kernel(loop))
    assert not any(change.code == "TL613" and "`a`" in change.message for change in result.changes)
