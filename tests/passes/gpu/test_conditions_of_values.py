"""Conditions that ask what kind of number an element is, that compute first, or that choose between conditions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused
from tests.passes.simulated import run

Found = Callable[[np.ndarray], np.ndarray]
DTYPES = ("float32", "float16", "bfloat16")


def tile_file(value: str, dtype: str = "float32", given: str = "0.0") -> str:
    """An expression of ``x[i, j]`` for every element of a matrix of 37 x 200."""
    body = f"""
    x = T.alloc_shared((8, 64), "{dtype}")
    y = T.alloc_shared((8, 64), "float32")
    T.copy(X[by * 8, bx * 64], x)
    for i, j in T.Parallel(8, 64):
        v = x[i, j]
        y[i, j] = {value}
    T.copy(y, Y[by * 8, bx * 64])
    """
    params = f'X: T.Tensor((37, 200), "{dtype}"), Y: T.Tensor((37, 200), "float32")'
    return gpu_file(params, body, launch="T.Kernel(T.ceildiv(200, 64), T.ceildiv(37, 8), threads=128) as (bx, by)")


def row_file(value: str) -> str:
    """An expression of ``s[i]``, the sum of a row, for 8 rows at a time: too few for a comparison of vectors."""
    body = f"""
    x = T.alloc_shared((8, 200), "float32")
    s = T.alloc_fragment((8,), "float32")
    y = T.alloc_fragment((8,), "float32")
    T.copy(X[bx * 8, 0], x)
    T.reduce_sum(x, s, dim=1)
    for i in T.Parallel(8):
        v = s[i]
        y[i] = {value}
    T.copy(y, Y[bx * 8])
    """
    params = 'X: T.Tensor((37, 200), "float32"), Y: T.Tensor((37,), "float32")'
    return gpu_file(params, body, launch="T.Kernel(T.ceildiv(37, 8), threads=128) as bx")


def numbers() -> np.ndarray:
    """Whole numbers, that all types hold, with every kind of number among them."""
    x = np.random.default_rng(3).integers(-4, 5, (37, 200)).astype(np.float32)
    x[3, 5], x[7, 199], x[36, 0], x[20, 64], x[11, 63] = np.nan, np.inf, -np.inf, -np.nan, 60000.0
    return x


KINDS: dict[str, Found] = {
    "T.if_then_else(T.isnan(v), 7.0, v)": lambda x: np.where(np.isnan(x), 7.0, x),
    "T.if_then_else(T.isinf(v), 7.0, v)": lambda x: np.where(np.isinf(x), 7.0, x),
    "T.if_then_else(T.isfinite(v), v, 7.0)": lambda x: np.where(np.isfinite(x), x, 7.0),
    "T.if_then_else(T.Not(T.isnan(v)), v, 7.0)": lambda x: np.where(np.isnan(x), 7.0, x),
    "T.if_then_else(T.isnan(v) | T.isinf(v), 7.0, v)": lambda x: np.where(np.isfinite(x), x, 7.0),
    "T.if_then_else(T.isinf(v) & (v < 0), 7.0, v)": lambda x: np.where(np.isneginf(x), 7.0, x),
    'T.Select(T.isnan(T.cast(v, "float32")), T.float32(7), T.cast(v, "float32"))': lambda x: np.where(
        np.isnan(x), 7.0, x
    ),
    'T.cast(T.isfinite(v), "float32")': lambda x: np.isfinite(x).astype(np.float32),
}
CHOICES: dict[str, Found] = {
    "T.if_then_else(T.if_then_else(v > 1, v < 3, T.bool(False)), 7.0, v)": lambda x: np.where((x > 1) & (x < 3), 7, x),
    "T.if_then_else(T.if_then_else(v > 1, T.bool(True), v < -1), 7.0, v)": lambda x: np.where((x > 1) | (x < -1), 7, x),
    "T.if_then_else(T.if_then_else(v > 1, False, v > -1), 7.0, v)": lambda x: np.where(~(x > 1) & (x > -1), 7, x),
    "T.if_then_else(T.if_then_else(v > 1, v < -1, True), 7.0, v)": lambda x: np.where(~(x > 1), 7, x),
    "T.if_then_else(T.if_then_else(v > 1, v < 3, v < -1), 7.0, v)": lambda x: np.where(
        np.where(x > 1, x < 3, x < -1), 7, x
    ),
    "T.if_then_else(T.if_then_else(v > 1, False, True), 7.0, v)": lambda x: np.where(x > 1, x, 7),
}
COMPUTED: dict[str, Found] = {
    "T.if_then_else(v - T.floor(v / 2.0) * 2.0 > 0.5, -v, v)": lambda x: np.where(x % 2 > 0.5, -x, x),
    "T.if_then_else((T.abs(v) > 2.0) & (T.exp(v) < 100.0), 7.0, v)": lambda x: np.where(
        (np.abs(x) > 2) & (np.exp(x) < 100), 7, x
    ),
    "T.if_then_else(T.max(v, 1.0) == T.sqrt(v * v), 7.0, v)": lambda x: np.where(np.fmax(x, 1) == np.sqrt(x * x), 7, x),
}


def check(text: str, given: np.ndarray, wanted: np.ndarray, out: str = "Y") -> str:
    new = migrated(text)
    found = run(new, {"X": given})[out]
    np.testing.assert_array_equal(found, wanted)
    return new


@pytest.mark.sampled
@pytest.mark.parametrize("value", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kinds_of_numbers(value: str, dtype: str) -> None:
    x = numbers()
    x[11, 63] = 256.0 if dtype == "bfloat16" else 60000.0
    new = check(tile_file(value, dtype), x, KINDS[value](x))
    assert "T.tile.compare(" in new
    assert "if x[i, j]" not in new


@pytest.mark.parametrize("value", {**KINDS, **CHOICES, **COMPUTED})
def test_one_value_for_each_row(value: str) -> None:
    """The condition is asked for each element, and what it computes is computed before, for all of them."""
    x = np.zeros((37, 200), np.float32)
    x[:, 64] = numbers()[:, 5]
    x[3, 7], x[4, 7], x[5, 7] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        check(row_file(value), x, {**KINDS, **CHOICES, **COMPUTED}[value](x.sum(1)))


@pytest.mark.parametrize("value", CHOICES)
def test_a_choice_between_conditions(value: str) -> None:
    check(tile_file(value), numbers(), CHOICES[value](numbers()))


def test_a_part_that_is_read_under_its_condition_only() -> None:
    body = """
    w = T.alloc_shared((64,), "float32")
    for j in T.Parallel(64):
        k = bx * 64 + j
        known = T.if_then_else(k < 200, S[k] == 3, T.bool(False))
        w[j] = T.if_then_else(known, 1.0, 2.0)
    T.copy(w, Y[bx * 64])
    """
    params = 'S: T.Tensor((200,), "int32"), Y: T.Tensor((200,), "float32")'
    new = migrated(gpu_file(params, body, launch="T.Kernel(T.ceildiv(200, 64), threads=64) as bx"))
    s = np.random.default_rng(5).integers(2, 5, 200).astype(np.int32)
    np.testing.assert_array_equal(run(new, {"S": s})["Y"], np.where(s == 3, 1.0, 2.0))


def test_integers_have_no_kinds() -> None:
    refused(tile_file("T.if_then_else(T.isnan(v), 7.0, 1.0)", "int32"))


def test_the_absolute_value_is_not_said_to_be_rounded() -> None:
    """The tool's own ``T.abs`` is exact in every type."""
    from tests.passes.gpu.support import result_of

    notes = result_of(tile_file("T.if_then_else(T.isinf(v), 7.0, v)", "float16")).diagnostics
    assert not [note for note in notes if note.code == "TL144"]
