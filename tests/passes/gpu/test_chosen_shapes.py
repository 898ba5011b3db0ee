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
def test_a_shape_that_python_chooses_has_the_axes_of_both(rows: bool) -> None:
    params = "A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')"
    text = gpu_file(params, BODY, args="rows")
    values = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    new = agree(text, {"A": values}, args=(rows,))
    assert "((32, 64) if rows else (64, 32), " in new  # as the author has it


def test_a_tensor_whose_sizes_calls_give_is_read_as_before() -> None:
    """Each call says by a whole extent how large it is, whichever axis that is."""
    shape = "(K, M) if turned else (M, K)"
    head = f"M = T.dynamic('M')\nK = T.dynamic('K')\nshape = {shape}"
    params = "A: T.Tensor(shape, 'float32'), B: T.Tensor((M, 64), 'float32')"
    body = "x = T.alloc_fragment((64, 64), 'float32')\nT.copy(A[bx * 64, 0], x)\nT.copy(x, B[bx * 64, 0])"
    text = gpu_file(
        params, body, args="turned=False", factory=head, launch="T.Kernel(T.ceildiv(M, 64), threads=128) as bx"
    )
    assert {d.code for d in result_of(text).diagnostics if d.severity == "error"} == set()


def test_shapes_with_another_number_of_axes_stay_unknown() -> None:
    body = BODY.replace("(32, 64) if rows else (64, 32)", "(32, 64) if rows else (64,)")
    text = gpu_file("A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')", body, args="rows")
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]
