"""Elements of a vector, or of one axis of a tile, in another order than that of the loop."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RANDOM = np.random.default_rng(5)
V = RANDOM.integers(-9, 9, (16,)).astype(np.float32)
W = RANDOM.integers(-9, 9, (16, 16)).astype(np.float32)
R, C = np.mgrid[:16, :16]
BODY = """
v = T.alloc_shared((16,), "{dtype}")
w = T.alloc_shared((16, 16), "{dtype}")
o = T.alloc_fragment((16, 16), "float32")
T.copy(V, v)
T.copy(W, w)
for i, j in T.Parallel(16, 16):
    o[i, j] = {value}
T.copy(o, O)
"""


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("v[15 - i]", V[15 - R]),
        ("w[i, j] * v[15 - i]", W * V[15 - R]),
        ("v[(i + 1) % 16] + 1.0", V[(R + 1) % 16] + 1),
        ("w[i, j] + v[i // 4]", W + V[R // 4]),
        ("w[i, j] - v[i ^ 1]", W - V[R ^ 1]),
        ("w[i, j] - v[2 * (i % 8)]", W - V[2 * (R % 8)]),
        ("w[0, 15 - i] * 2.0", W[0, 15 - R] * 2),
        ("w[i // 2, 3] + w[i, j]", W[R // 2, 3] + W),
        ("w[i, j] * v[15 - j]", W * V[15 - C]),
        ("v[15 - i] * v[15 - j] + v[i] - v[j]", V[15 - R] * V[15 - C] + V[R] - V[C]),
        ("v[(i + j) % 16] + w[i, j]", V[(R + C) % 16] + W),
    ],
)
def test_in_another_order(value: str, expected: np.ndarray, dtype: str) -> None:
    params = f'V: T.Tensor((16,), "{dtype}"), W: T.Tensor((16, 16), "{dtype}"), O: T.Tensor((16, 16), "float32")'
    new = migrated(gpu_file(params, BODY.format(dtype=dtype, value=value), launch="T.Kernel(1, threads=128) as bx"))
    inputs = {"V": V.astype(dtype), "W": W.astype(dtype)}
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_array_equal(run(new, inputs, "factory", (), reading)["O"], expected, err_msg=reading)


def test_a_vector_is_picked_once_for_all_columns() -> None:
    value = "w[i, j] * v[15 - i]"
    params = 'V: T.Tensor((16,), "float32"), W: T.Tensor((16, 16), "float32"), O: T.Tensor((16, 16), "float32")'
    new = migrated(gpu_file(params, BODY.format(dtype="float32", value=value), launch="T.Kernel(1, threads=128) as bx"))
    assert "for i in T.serial(16):\n                v_tmp[i] = v[15 - i]\n" in new


def test_a_condition_that_never_holds_makes_no_index_negative() -> None:
    body = """
    x = T.alloc_fragment((2, 64), "float32")
    T.copy(X[bx * 2, 0], x)
    for i, j in T.Parallel(2, 64):
        if i >= 3:
            x[i, j] = j
    T.copy(x, O[bx * 2, 0])
    """
    x = RANDOM.standard_normal((4, 64)).astype(np.float32)
    new = migrated(gpu_file('X: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")', body))
    assert "2 + " not in new
    np.testing.assert_array_equal(run(new, {"X": x})["O"], x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T.sin(T.min(2.0, j))", np.sin(np.minimum(2, C))),
        ("T.exp(i * 0.01 - j * 0.1)", np.exp(R * 0.01 - C * 0.1)),
        ("T.sqrt(T.max(j, 3.0))", np.sqrt(np.maximum(C, 3))),
        ("T.pow(T.max(j, 1.0), 0.5)", np.maximum(C, 1) ** 0.5),
        ("T.cos(T.max(i, j) * 0.01)", np.cos(np.maximum(R, C) * 0.01)),
    ],
)
def test_functions_of_indices_are_computed_in_one_type(value: str, expected: np.ndarray, dtype: str) -> None:
    body = f"o = T.alloc_fragment((16, 16), '{dtype}')\nfor i, j in T.Parallel(16, 16):\n    o[i, j] = {value}\n"
    body += "T.copy(o, O)"
    text = gpu_file(f'O: T.Tensor((16, 16), "{dtype}")', body, launch="T.Kernel(1, threads=128) as bx")
    new = migrated(text)
    for reading in (IDEAL, ACTUAL):
        found = np.asarray(run(new, {}, "factory", (), reading)["O"], np.float64)
        np.testing.assert_allclose(found, expected, 2e-2, 2e-2, err_msg=reading)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T.max(w[i, j], w[2, 5])", np.maximum(W, W[2, 5])),
        ("T.min(w[2, 5], w[i, j])", np.minimum(W, W[2, 5])),
        ("T.max(w[i, j], v[3])", np.maximum(W, V[3])),
        ("T.max(w[i, j], W[2, 5])", np.maximum(W, W[2, 5])),
    ],
)
def test_an_element_of_two_axes_is_no_scalar_operand(value: str, expected: np.ndarray) -> None:
    """Of ``w[2, 5]`` as an operand of a tile operator the compiler keeps the first index."""
    params = 'V: T.Tensor((16,), "float32"), W: T.Tensor((16, 16), "float32"), O: T.Tensor((16, 16), "float32")'
    new = migrated(gpu_file(params, BODY.format(dtype="float32", value=value), launch="T.Kernel(1, threads=128) as bx"))
    np.testing.assert_array_equal(run(new, {"V": V, "W": W})["O"], expected)
