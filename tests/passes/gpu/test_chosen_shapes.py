"""Tiles whose shape a parameter of the factory chooses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

BODY = """
x = T.alloc_fragment((32, 64) if rows else (64, 32), "float32")
if rows:
    T.copy(A[bx * 32 : (bx + 1) * 32, 0:64], x)
else:
    T.copy(A[0:64, bx * 32 : (bx + 1) * 32], x)
for i, j in T.Parallel(32 if rows else 64, 64 if rows else 32):
    x[i, j] = x[i, j] * 2.0
if rows:
    T.copy(x, B[bx * 32 : (bx + 1) * 32, 0:64])
else:
    T.copy(x, B[0:64, bx * 32 : (bx + 1) * 32])
"""


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("shape", ["(32, 64) if rows else (64, 32)", "shape"])
def test_a_shape_that_python_chooses_has_the_axes_of_both(shape: str, rows: bool) -> None:
    params = "A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')"
    body = BODY.replace("(32, 64) if rows else (64, 32)", shape)
    text = gpu_file(params, body, args="rows", factory="shape = (32, 64) if rows else (64, 32)")
    values = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    new = agree(text, {"A": values}, args=(rows,))
    assert f"({shape}" in new  # as the author has it


def test_shapes_with_another_number_of_axes_stay_unknown() -> None:
    body = BODY.replace("(32, 64) if rows else (64, 32)", "(32, 64) if rows else (64,)")
    text = gpu_file("A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')", body, args="rows")
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]
