"""Parallel loops that are a program for each element, from the author's text to the migrated one, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file
from tests.passes.simulated import run

RNG = np.random.default_rng(11)


def test_a_chain_of_branches_that_change_what_the_next_ones_ask() -> None:
    body = """
    x = T.alloc_fragment((64,), "float32")
    best = T.alloc_fragment((64,), "float32")
    state = T.alloc_fragment((64,), "float32")
    T.copy(X[bx, 0], x)
    T.fill(best, -1.0)
    T.clear(state)
    for k in T.serial(3):
        for i in T.Parallel(64):
            if x[i] < 0.0:
                state[i] = state[i] - 1.0
            elif state[i] == 0.0:
                best[i] = x[i]
                state[i] = 1.0
            elif x[i] > best[i]:
                best[i] = x[i]
            x[i] = x[i] * 1.5 - 0.25
    for i in T.Parallel(64):
        best[i] = best[i] + state[i] * 10.0
    T.copy(best, Y[bx, 0])
    """
    x = RNG.standard_normal((2, 64)).astype(np.float32)
    text = gpu_file("X: T.Tensor((2, 64), 'float32'), Y: T.Tensor((2, 64), 'float32')", body)
    new = agree(text, {"X": x})
    assert "holds" in new
    best, state, value = np.full_like(x, -1), np.zeros_like(x), x.copy()
    for _ in range(3):
        for place in np.ndindex(*x.shape):
            if value[place] < 0:
                state[place] -= 1
            elif state[place] == 0:
                best[place], state[place] = value[place], 1
            elif value[place] > best[place]:
                best[place] = value[place]
        value = value * np.float32(1.5) - np.float32(0.25)
    np.testing.assert_allclose(run(new, {"X": x})["Y"], best + state * 10, rtol=1e-5)


@pytest.mark.parametrize(
    ("start", "update", "numpy"),
    [
        ("0.0", "acc[i] += T.cast(X[at // 9, at % 9], 'float32')", (np.sum, 0.0)),
        ("1000.0", "acc[i] = T.min(X[at // 9, at % 9], acc[i])", (np.min, np.inf)),
        ("-1000.0", "acc[i] = T.max(acc[i], X[at // 9, at % 9])", (np.max, -np.inf)),
    ],
)
def test_scattered_elements_under_a_condition(start: str, update: str, numpy: tuple[object, float]) -> None:
    body = f"""
    acc = T.alloc_fragment((32,), "float32")
    T.fill(acc, {start})
    for k in T.serial(5):
        for i in T.Parallel(32):
            at = (bx * 32 + i) * 2 + k - 2
            if at >= 0 and at % 9 < 7:
                {update}
    T.copy(acc, Y[bx * 32])
    """
    x = (RNG.standard_normal((15, 9)) + (3 if "min" in update else -3)).astype(np.float32)
    text = gpu_file("X: T.Tensor((15, 9), 'float32'), Y: T.Tensor((64,), 'float32')", body)
    new = agree(text, {"X": x})
    join, outside = numpy
    expected = np.zeros(64)
    for place in range(64):
        at = [place * 2 + k - 2 for k in range(5)]
        taken = [x[a // 9, a % 9] for a in at if 0 <= a < x.size and a % 9 < 7]
        expected[place] = join([*taken, outside])  # type: ignore[operator]
    np.testing.assert_allclose(run(new, {"X": x})["Y"], expected, rtol=1e-5)
    assert new.count("T.serial(32)") == 1, "no second loop over elements asks the condition again"


def test_an_element_outside_of_the_tensor_is_zero_and_counts() -> None:
    body = """
    acc = T.alloc_fragment((32,), "float32")
    T.fill(acc, -1000.0)
    for i in T.Parallel(32):
        at = (bx * 32 + i) * 2
        if at % 3 < 2:
            acc[i] = T.max(acc[i], X[at // 9, at % 9])
    T.copy(acc, Y[bx * 32])
    """
    x = (RNG.standard_normal((11, 9)) - 3).astype(np.float32)
    new = agree(gpu_file("X: T.Tensor((11, 9), 'float32'), Y: T.Tensor((64,), 'float32')", body), {"X": x})
    padded = np.append(x.reshape(-1), np.zeros(64))
    at = np.arange(64) * 2
    np.testing.assert_allclose(run(new, {"X": x})["Y"], np.where(at % 3 < 2, padded[at], -1000), rtol=1e-6)


def test_places_of_the_largest_elements() -> None:
    """Branches in branches, each of which changes what another one asks, and integers of 64 bits."""
    body = """
    for i in T.Parallel(32):
        best = T.alloc_var("float32")
        place = T.alloc_var("int64")
        first = T.alloc_var("bool")
        best = 0.0
        place = T.cast(0, "int64")
        first = True
        q = bx * 32 + i
        for k in T.serial(5):
            at = q % 9 * 2 + k - 2
            if at >= 0 and at < 15:
                value = X[q // 9, at]
                if T.isnan(value):
                    place = T.cast(at, "int64")
                elif first:
                    best = value
                    place = T.cast(at, "int64")
                    first = False
                elif value > best:
                    best = value
                    place = T.cast(at, "int64")
        if q < 54:
            Y[q // 9, q % 9] = place
    """
    x = RNG.standard_normal((6, 15)).astype(np.float32)
    x[2, 4] = np.nan
    text = gpu_file("X: T.Tensor((6, 15), 'float32'), Y: T.Tensor((6, 9), 'int64')", body)
    new = agree(text, {"X": x})
    expected = np.zeros((6, 9), np.int64)
    for row, column in np.ndindex(6, 9):
        best, first = 0.0, True
        for at in range(max(column * 2 - 2, 0), min(column * 2 + 3, 15)):
            if np.isnan(x[row, at]):
                expected[row, column] = at
            elif first or x[row, at] > best:
                best, expected[row, column], first = x[row, at], at, False
    np.testing.assert_array_equal(run(new, {"X": x})["Y"], expected)
