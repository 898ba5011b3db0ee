"""Copies of as many elements as a tensor says: the values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run

ROWS, WIDTH = 4, 64
PARAMS = (
    f'X: T.Tensor(({ROWS}, {WIDTH}), "float32"), L: T.Tensor(({ROWS},), "int32"), '
    f'Y: T.Tensor(({ROWS}, {WIDTH}), "float32")'
)
X = np.random.default_rng(5).standard_normal((ROWS, WIDTH)).astype(np.float32)
LENGTHS = np.array([0, 5, 63, 64], np.int32)
LONG = np.arange(WIDTH)[None, :] < LENGTHS[:, None]


def kernel(*lines: str) -> str:
    body = ['x = T.alloc_shared((64,), "float32")', "n = T.min(T.max(L[bx], 0), 64)", *lines]
    return gpu_file(PARAMS, "\n".join(body), launch=f"T.Kernel({ROWS}, threads=128) as bx")


def result(*lines: str) -> tuple[str, np.ndarray]:
    new = migrated(kernel(*lines))
    zeros = np.zeros((ROWS, WIDTH), np.float32)
    return new, run(new, {"X": X, "L": LENGTHS, "Y": zeros})["Y"]


DOUBLED = "for i in T.Parallel(64):\n    x[i] = x[i] * 2.0"


@pytest.mark.parametrize(("fill", "rest"), [("T.clear(x)", 0.0), ("T.fill(x, 3.0)", 3.0), ("T.fill(x, -1.5)", -1.5)])
def test_a_load_fills_what_was_filled(fill: str, rest: float) -> None:
    new, found = result(fill, "T.copy(X[bx, 0:n], x[0:n])", DOUBLED, "T.copy(x, Y[bx, 0])")
    assert "T.copy(X[bx, 0:n], x" in new
    assert "x[0:n]" not in new
    np.testing.assert_allclose(found, np.where(LONG, X, rest) * 2)


def test_a_load_keeps_what_lies_behind() -> None:
    new, found = result(
        "T.copy(X[0, 0], x)", DOUBLED, "T.copy(X[bx, 0:n], x[0:n])", "T.copy(x, Y[bx, 0])"
    )
    assert "x_part" in new
    np.testing.assert_allclose(found, np.where(LONG, X, X[:1] * 2))


def test_a_value_between_the_fill_and_the_load_is_kept() -> None:
    _, found = result("T.clear(x)", "x[63] = 7.0", "T.copy(X[bx, 0:n], x[:n])", "T.copy(x, Y[bx, 0])")
    expected = np.where(LONG, X, 0)
    expected[LENGTHS < WIDTH, 63] = 7
    np.testing.assert_allclose(found, expected)


def test_a_store_ends_with_the_window() -> None:
    new, found = result("T.copy(X[bx, 0], x)", DOUBLED, "T.copy(x[0:n], Y[bx, 0:n])")
    assert "T.copy(x, Y[bx, 0:n])" in new
    np.testing.assert_allclose(found, np.where(LONG, X * 2, 0))
