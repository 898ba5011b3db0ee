"""Copies of slices with a step, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused, result_of
from tests.passes.simulated import run

PARAMS = 'A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")'
VALUES = np.random.default_rng(4).standard_normal((32, 64)).astype(np.float32)
START = 'x = T.alloc_shared((16, 64), "float32")\nT.copy(A[bx * 16, 0], x)\n'
END = "T.copy(x, B[bx * 16, 0])"


def kernel(body: str) -> str:
    return gpu_file(PARAMS, START + body + END)


def test_halves_of_pairs() -> None:
    """The columns of a rotation: even ones and odd ones, there and back."""
    body = """even = T.alloc_fragment((16, 32), "float32")
odd = T.alloc_fragment((16, 32), "float32")
T.copy(x[:, 0::2], even)
T.copy(x[:, 1::2], odd)
T.copy(odd, x[:, 0:64:2])
T.copy(even, x[:, 1::2])
"""
    new = migrated(kernel(body))
    (done,) = result_of(kernel(body)).kernels
    assert done.checked is not None
    assert done.checked.equal
    expected = VALUES.reshape(32, 32, 2)[:, :, ::-1].reshape(32, 64)
    np.testing.assert_array_equal(run(new, {"A": VALUES})["B"], expected)


@pytest.mark.parametrize(
    ("part", "columns"),
    [("x[:, ::3]", slice(None, None, 3)), ("x[0:16, 5:40:7]", slice(5, 40, 7)), ("x[:, 8::1]", slice(8, None))],
)
def test_parts(part: str, columns: slice) -> None:
    width = VALUES[:, columns].shape[1]
    tile = f'y = T.alloc_fragment((16, {width}), "float32")\nT.copy({part}, y)\n'
    body = f"{tile}for i, j in T.Parallel(16, {width}):\n    x[i, j] = y[i, j] + 1.0\n"
    new = migrated(kernel(body))
    expected = VALUES.copy()
    expected[:, :width] = VALUES[:, columns] + 1
    np.testing.assert_array_equal(run(new, {"A": VALUES})["B"], expected)


@pytest.mark.parametrize("part", ["x[:, ::-1]", "x[::2, ::2]"])
def test_other_shapes_are_refused(part: str) -> None:
    body = f'y = T.alloc_fragment((16,), "float32")\nT.copy({part}, y)\n'
    assert [code for code, _ in refused(kernel(body))] == ["TL732"]
