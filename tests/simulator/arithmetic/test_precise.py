"""Rounding, conversion and functions of the precise mode."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tl2npu.simulator.arithmetic.precise import Precise as A
from tl2npu.simulator.ir.dtypes import numpy_dtype

NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", NARROW)
def test_conversions_round_as_torch_does(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    values = (random.standard_normal(4000) * 10.0 ** random.integers(-6, 3, 4000)).astype(np.float32)
    found = A.cast(values, dtype).astype(np.float32)
    expected = torch.from_numpy(values).to(getattr(torch, dtype)).float().numpy()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float16", 2049.0, 2048.0),  # ties go to the even neighbour
        ("float16", 2051.0, 2052.0),
        ("float16", 65520.0, math.inf),
        ("bfloat16", 257.0, 256.0),
        ("bfloat16", 259.0, 260.0),
        ("float8_e4m3fn", 17.0, 16.0),
        ("float8_e4m3fn", 19.0, 20.0),
        ("float8_e5m2", 9.0, 8.0),
    ],
)
def test_ties_go_to_even(dtype: str, value: float, expected: float) -> None:
    with np.errstate(over="ignore"):
        assert float(A.cast(np.array([value], np.float32), dtype)[0]) == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "sigmoid", "log", "erf", "rsqrt"])
def test_functions_of_narrow_floats_round_once(dtype: str, name: str) -> None:
    x = np.linspace(0.1, 4, 50).astype(numpy_dtype(dtype))
    exact = {
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
        "rsqrt": lambda v: 1 / math.sqrt(v),
    }.get(name) or getattr(math, name)
    expected = np.array([exact(float(v)) for v in x], np.float32).astype(x.dtype)
    found = getattr(A, name)(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_operation_rounds_to_its_type(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    x, y = (np.random.default_rng(n).standard_normal(100).astype(kind) for n in (0, 1))
    for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
        expected = function(x.astype(np.float64), y.astype(np.float64)).astype(np.float32).astype(kind)
        found = getattr(A, name)(x, y)
        assert found.dtype == kind
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@settings(max_examples=100)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_the_error_function(x: float) -> None:
    found = float(A.erf(np.array([x]))[0])
    expected = math.erf(x)
    assert (math.isnan(found) and math.isnan(expected)) or found == pytest.approx(expected, rel=1e-15, abs=5e-324)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "int4", "uint4"])
def test_floats_saturate_as_integers(dtype: str) -> None:
    limits: Any = ml_dtypes.iinfo(numpy_dtype(dtype))
    least, largest = int(limits.min), int(limits.max)
    values = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 3.9, -1.0, 0.0])
    expected = [largest, least, largest, least, 0, 3, max(-1, least), 0]
    assert [int(v) for v in A.cast(values, dtype)] == expected


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("trunc", [2, -2, 3, 0]),
        ("rint", [2, -2, 4, 0]),
        ("floor", [2, -3, 3, -1]),
        ("ceil", [3, -2, 4, 0]),
        ("round", [3, -3, 4, -1]),
    ],
)
def test_modes_of_float_to_integer(mode: str, expected: list[int]) -> None:
    values = np.array([2.5, -2.5, 3.5, -0.5], np.float32)
    assert A.cast(values, "int32", mode).tolist() == expected


@given(st.integers(-(2**62), 2**62), st.integers(-(2**31), 2**31).filter(bool))
def test_integer_quotients_truncate(x: int, y: int) -> None:
    assert int(A.div(np.array([x]), np.array([y]))[0]) == int(math.copysign(1, x * y)) * (abs(x) // abs(y))


def test_sums_of_narrow_floats_are_kept_in_fp32() -> None:
    ones = np.ones(4096, np.float16)
    assert float(A.sum(np.array([2048, 1, 1, 1, 1], np.float16), 0)) == 2052  # in fp16, 2048 + 1 is 2048
    product = A.matmul(ones[None], ones[:, None], "float32")
    assert product.dtype == np.float32
    assert product.item() == 4096
    total = np.array([2048], np.float16)
    A.accumulate(total, np.array([1.0], np.float32))
    assert total[0] == 2048  # one rounding, to the type of the sum
    assert float(A.cumsum(ones, 0)[-1]) == 4096


def test_doubles_stay_doubles() -> None:
    x = np.array([1.0, 1e-12])
    assert A.sum(x, 0) == 1.0 + 1e-12
    assert A.cumsum(x, 0)[1] == 1.0 + 1e-12
    assert A.pow(np.array([1 + 1e-12]), np.array([1.0]))[0] == 1 + 1e-12


def test_products_of_integers_are_exact() -> None:
    x = np.full((1, 3), 2**30 + 1, np.int32)
    assert A.matmul(x, x.T, "int32").item() == 3 * (2**30 + 1) ** 2
    small = np.full((1, 5000), 127, np.int8)
    assert A.matmul(small, small.T, "int32").item() == 5000 * 127 * 127


def test_bits() -> None:
    assert A.reinterpret(np.float32(1), "float32", "int32") == 0x3F800000
    assert A.reinterpret(np.array([0x3F80], np.int64), "uint16", "bfloat16")[0] == 1
