from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.stmt import Kernel, Launch, Op
from tl2npu.verify.compare import difference, largest, operator_class, tolerances


def kernel(*operators: str, extent: int = 64) -> Kernel:
    body = [Op(name, {}) for name in operators]
    launch = Launch((1,), (), None, True, None, list(body))
    return Kernel("k", [Buffer("X", (extent, 64), "float16", "global")], [launch])


@pytest.mark.parametrize(
    ("operators", "extent", "expected"),
    [
        (("copy", "tile.add"), 64, ""),
        (("gemm_v0",), 64, ""),
        (("gemm_v0",), 2048, "attention"),
        (("gemm_v0", "gemm_v0"), 64, "attention"),
        (("gemm_v0", "tile.exp"), 64, "attention"),
        (("tile.exp",), 4096, ""),
        (("reduce_sum",), 64, "reduction"),
    ],
)
def test_operator_class(operators: tuple[str, ...], extent: int, expected: str) -> None:
    assert operator_class(kernel(*operators, extent=extent)) == expected


def test_tolerances() -> None:
    plain, attention, reduction = kernel("copy"), kernel("gemm_v0", "gemm_v0"), kernel("reduce_max")
    floats = ("float16", "float32", "bfloat16")
    assert [tolerances(plain)[d] for d in floats] == [1e-3, 1e-5, 1e-2]
    assert [tolerances(attention)[d] for d in floats] == [5e-3, 1e-4, 1e-2]
    assert [tolerances(reduction)[d] for d in floats] == [1e-3, 1e-4, 1e-2]
    assert not {"int8", "int32", "bool"} & tolerances(attention).keys()


@pytest.mark.parametrize(("memory", "result"), [("ub", 5e-3), ("global", 1e-4)])
def test_results_have_the_digits_of_what_was_rounded_on_the_chip(memory: str, result: float) -> None:
    wide, narrow = (Buffer("w", (16, 16), "float32", "ub"), Buffer("n", (16, 16), "float16", memory))
    attention = kernel("gemm_v0", "gemm_v0")
    attention.launches[0].body.append(Op("copy", {"src": wide[:, :], "dst": narrow[:, :]}))
    assert tolerances(attention)["float32"] == result
    assert "int32" not in tolerances(attention)


def test_within_and_beyond_the_tolerance() -> None:
    old = np.array([[1.0, 100.0], [2.0, 4.0]], np.float32)
    assert difference(old, old * np.float32(1 + 5e-6), 1e-5, 0.0) is None
    new = old.copy()
    new[1, 0] += 0.01
    found = difference(old, new, 1e-5, 0.0)
    assert found is not None
    assert (found.index, found.count, found.size) == ((1, 0), 1, 4)
    assert found.largest == pytest.approx(0.01, rel=1e-4)


def test_absolute_tolerance_follows_the_magnitude() -> None:
    """1e-3 of a tensor whose elements are about 1000 is 1, also for an element near 0."""
    old = np.full(100, 1000.0, np.float32)
    old[7] = 0.0
    new = old.copy()
    new[7] = 0.5
    assert difference(old, new, 1e-3, None) is None
    new[7] = 2.0
    assert difference(old, new, 1e-3, None) is not None
    assert difference(old, new, 1e-3, 5.0) is None


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (1.0, np.inf, False),
        (np.inf, 6e4, False),
        (0.0, -0.0, True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_special_values_stand_in_the_same_places(old: float, new: float, same: bool, dtype: type) -> None:
    left, right = np.array([1.0, old]).astype(dtype), np.array([1.0, new]).astype(dtype)
    assert (difference(left, right, 0.5, 10.0) is None) is same


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_integers_are_equal_or_not(dtype: str) -> None:
    kind = np.dtype(dtype)
    top = True if dtype == "bool" else np.iinfo(kind).max
    old = np.array([0, top], kind)
    assert difference(old, old.copy(), 0.0, None) is None
    new = old.copy()
    new[1] = 0 if dtype == "bool" else top - 1
    found = difference(old, new, 0.0, None)
    assert found is not None
    assert found.index == (1,)


def test_nothing_is_close_to_zero_tolerance() -> None:
    old = np.array([1.0], np.float32)
    assert difference(old, np.nextafter(old, np.float32(2)), 0.0, 0.0) is not None


def test_largest_looks_at_finite_values_only() -> None:
    old = np.array([1.0, np.inf, np.nan, 5.0], np.float32)
    new = np.array([1.5, 7.0, 3.0, 5.0], np.float32)
    assert largest(old, new) == 0.5
    assert largest(old[:0], new[:0]) == 0.0


ROWS = {
    "rows": ((2, 64), (slice(1, 2),)),
    "columns": ((64, 2), (slice(None), slice(1, 2))),
    "one of many rows": ((48, 32), (slice(17, 18),)),
    "the middle of three axes": ((8, 2, 32), (slice(None), slice(0, 1))),
    "a batch": ((3, 16, 8), (slice(2, 3),)),
}


@pytest.mark.parametrize(("shape", "small"), ROWS.values(), ids=ROWS)
def test_the_tolerance_follows_rows_of_any_axis(shape: tuple[int, ...], small: tuple[slice, ...]) -> None:
    """Means of about 0.03 beside sums of squares of about 1000: 10 % of a mean is wrong."""
    rng = np.random.default_rng(0)
    old = (rng.standard_normal(shape) * 1000).astype(np.float32)
    old[small] *= np.float32(3e-5)
    new = old.copy()
    new[small] += np.float32(3e-3)
    assert difference(old, new, 1e-4, None) is not None
    assert difference(old, old + old * np.float32(1e-5), 1e-4, None) is None


@pytest.mark.parametrize(("rows", "columns"), [(1e6, 1.0), (1.0, 1e-6), (1e6, 1e-6), (1e4, 1e4)])
def test_what_cancels_has_the_scale_of_its_terms(rows: float, columns: float) -> None:
    """A product of matrices, summed in two orders, of which one row and one column are larger or smaller."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 256)).astype(np.float32)
    b = rng.standard_normal((256, 96)).astype(np.float32)
    a[5] *= np.float32(rows)
    b[:, 7] *= np.float32(columns)
    old = a @ b
    new = np.zeros_like(old)
    for k in reversed(range(256)):
        new += a[:, k : k + 1] * b[k : k + 1]
    assert (np.abs(old - new) > 1e-5 * np.abs(old)).any()  # which no relative tolerance alone allows
    assert difference(old, new, 1e-5, None) is None
    new[5, 7] += 1e-3 * rows * columns * 16
    assert difference(old, new, 1e-5, None) is not None


def test_few_elements_tell_nothing_of_their_size() -> None:
    """Two results of a row may both be what is left of terms of 1."""
    old = np.ones((64, 2), np.float32)
    old[3] = 1e-7
    new = old.copy()
    new[3] = 2e-7
    assert difference(old, new, 1e-5, None) is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_numbers_below_the_normal_ones_have_fewer_digits(dtype: Any) -> None:
    least = ml_dtypes.finfo(dtype).smallest_subnormal
    old = np.full((32, 32), 3 * float(least)).astype(dtype)
    new = np.full((32, 32), 4 * float(least)).astype(dtype)
    assert difference(old, new, 1e-3, None) is None
    normal = np.full((32, 32), 8 * float(ml_dtypes.finfo(dtype).smallest_normal)).astype(dtype)
    assert difference(normal, (normal * 1.125).astype(dtype), 1e-3, None) is not None


def test_own_errors_of_the_old_kernel() -> None:
    old = np.full((32, 32), 1e-7, np.float32)
    new = np.full((32, 32), 3e-7, np.float32)
    assert difference(old, new, 1e-5, None) is not None
    assert difference(old, new, 1e-5, None, 3e-7) is None
