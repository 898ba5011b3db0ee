"""``T.tile`` arithmetic against plain NumPy formulas."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator

X = np.array([[-2.0, -0.5, 0.5, 3.0], [1.0, 2.5, -1.5, 4.0]], np.float32)
Y = np.array([[2.0, 3.0, -1.0, 0.25], [1.0, -2.0, 5.0, 8.0]], np.float32)
POSITIVE = np.abs(X)


def blank(like: np.ndarray) -> np.ndarray:
    return np.full_like(like, 77)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", X + Y),
        ("sub", X - Y),
        ("mul", X * Y),
        ("div", X / Y),
        ("max", np.maximum(X, Y)),
        ("min", np.minimum(X, Y)),
    ],
)
def test_two_tiles(call: Any, name: str, expected: np.ndarray) -> None:
    dst = blank(X)
    call(f"tile.{name}", dst=dst, src0=X, src1=Y)
    np.testing.assert_array_equal(dst, expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add", X + 3), ("sub", X - 3), ("mul", X * 3), ("max", np.maximum(X, 3)), ("min", np.minimum(X, 3))],
)
@pytest.mark.parametrize("number", [3, 3.0, np.float32(3), np.float16(3)])
def test_a_tile_and_a_number(call: Any, name: str, expected: np.ndarray, number: Any) -> None:
    dst = blank(X)
    call(f"tile.{name}", dst=dst, src0=X, src1=number)
    np.testing.assert_array_equal(dst, expected)


def test_division_by_a_number_multiplies_by_the_reciprocal(call: Any) -> None:
    dst, x = np.zeros(1, np.float32), np.array([5.0], np.float32)
    call("tile.div", dst=dst, src0=x, src1=3.0)
    assert dst[0] == np.float32(5) * (np.float32(1) / np.float32(3))
    whole = np.array([6], np.int32)
    with pytest.raises(UnsupportedOperator, match="reciprocal"):
        call("tile.div", dst=whole, src0=whole, src1=3)


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("exp", X, np.exp(X)),
        ("ln", POSITIVE, np.log(POSITIVE)),
        ("abs", X, np.abs(X)),
        ("reciprocal", X, 1 / X),
        ("sqrt", POSITIVE, np.sqrt(POSITIVE)),
        ("rsqrt", POSITIVE, 1 / np.sqrt(POSITIVE)),
        ("relu", X, np.where(X > 0, X, 0)),
        ("sigmoid", X, 1 / (1 + np.exp(-X))),
        ("silu", X, X / (1 + np.exp(-X))),
        ("sin", X, np.sin(X)),
        ("cos", X, np.cos(X)),
    ],
)
def test_functions(call: Any, name: str, source: np.ndarray, expected: np.ndarray) -> None:
    dst = blank(X)
    parameter = "src" if name in ("sigmoid", "silu", "sin", "cos") else "src0"
    call(f"tile.{name}", dst=dst, **{parameter: source})
    np.testing.assert_allclose(dst, expected, rtol=1e-6)


def test_narrow_floats_are_rounded_once(call: Any) -> None:
    x = np.array([1.0, 2.0, 3.0], ml_dtypes.bfloat16)
    dst = np.zeros(3, ml_dtypes.bfloat16)
    call("tile.silu", dst=dst, src=x)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(dst, (wide / (1 + np.exp(-wide))).astype(ml_dtypes.bfloat16))


def test_equal_counts_in_other_shapes_agree(call: Any) -> None:
    dst = np.zeros((1, 8), np.float32)
    call("tile.add", dst=dst, src0=X, src1=Y.reshape(8))
    np.testing.assert_array_equal(dst, (X + Y).reshape(1, 8))


def test_a_larger_second_buffer_gives_its_first_elements(call: Any) -> None:
    dst = np.zeros(4, np.float32)
    call("tile.mul", dst=dst, src0=X[0], src1=Y)
    np.testing.assert_array_equal(dst, X[0] * Y[0])


@pytest.mark.parametrize("name", ["add", "bitwise_xor", "pow", "exp"])
def test_sizes_that_do_not_agree_are_named(call: Any, name: str) -> None:
    kind = np.int32 if name == "bitwise_xor" else np.float32
    arguments: dict[str, Any] = {"dst": np.zeros(8, kind), "src0": np.zeros((2, 3), kind)}
    if name != "exp":
        arguments["src1"] = np.zeros(8, kind)
    with pytest.raises(SimulatorError, match=r"\[2, 3\].*\[8\]"):
        call(f"tile.{name}", **arguments)


def test_only_the_second_source_may_be_larger(call: Any) -> None:
    with pytest.raises(SimulatorError, match=r"\[2, 4\] \(8 elements\) does not fit \[4\]"):
        call("tile.add", dst=np.zeros(4, np.float32), src0=X, src1=X)


def test_element_types_that_do_not_agree(call: Any) -> None:
    with pytest.raises(SimulatorError, match="float16 and float32"):
        call("tile.add", dst=blank(X), src0=X.astype(np.float16), src1=1.0)


def test_a_region_of_a_buffer_is_written_in_place(call: Any) -> None:
    whole = np.zeros((4, 4), np.float32)
    call("tile.add", dst=whole[1:3], src0=X, src1=1.0)
    np.testing.assert_array_equal(whole[1:3], X + 1)
    assert not whole[0].any()
    assert not whole[3].any()


def test_in_place(call: Any) -> None:
    x = X.copy()
    call("tile.mul", dst=x, src0=x, src1=x)
    np.testing.assert_array_equal(x, X * X)


def test_accumulating(call: Any) -> None:
    dst = Y.copy()
    call("tile.axpy", dst=dst, src0=X, scalar_value=2.0)
    np.testing.assert_array_equal(dst, 2 * X + Y)
    dst = Y.copy()
    call("tile.mul_add_dst", dst=dst, src0=X, src1=X)
    np.testing.assert_array_equal(dst, X * X + Y)


def test_multiply_and_add_round_once(call: Any) -> None:
    x = np.array([1 + 2**-10], np.float16)
    dst = np.array([-1.0], np.float16)
    call("tile.mul_add_dst", dst=dst, src0=x, src1=x)
    assert dst[0] == np.float16(2**-9 + 2**-20)


def test_leaky_relu_scales_negative_elements(call: Any) -> None:
    dst = blank(X)
    call("tile.leaky_relu", dst=dst, src0=X, scalar_value=2.0)
    np.testing.assert_array_equal(dst, np.where(X < 0, X * 2, X))


BITS_I = np.array([0b1100, 0b1010, -1, 7], np.int16)
BITS_J = np.array([0b1010, 0b0110, 3, -8], np.int16)


@pytest.mark.parametrize(
    ("name", "expected"), [("and", BITS_I & BITS_J), ("or", BITS_I | BITS_J), ("xor", BITS_I ^ BITS_J)]
)
def test_bits(call: Any, name: str, expected: np.ndarray) -> None:
    dst = np.zeros(4, np.int16)
    call(f"tile.bitwise_{name}", dst=dst, src0=BITS_I, src1=BITS_J)
    np.testing.assert_array_equal(dst, expected)


def test_bits_of_one_tile(call: Any) -> None:
    dst = np.zeros(4, np.int16)
    call("tile.bitwise_not", dst=dst, src0=BITS_I)
    np.testing.assert_array_equal(dst, -BITS_I - 1)


def test_bits_with_a_number_have_no_operator(call: Any) -> None:
    with pytest.raises(UnsupportedOperator, match="number"):
        call("tile.bitwise_and", dst=BITS_I.copy(), src0=BITS_I, src1=3)


def test_bits_of_floats(call: Any) -> None:
    with pytest.raises(SimulatorError, match="floats"):
        call("tile.bitwise_xor", dst=X.copy(), src0=X, src1=X)


def test_shifts(call: Any) -> None:
    signed, unsigned = np.array([-8, 9], np.int32), np.array([2**31, 9], np.uint32)
    dst = np.zeros(2, np.int32)
    call("tile.bitwise_lshift", dst=dst, src0=signed, scalarValue=2)
    np.testing.assert_array_equal(dst, [-32, 36])
    call("tile.bitwise_rshift", dst=dst, src0=signed, scalarValue=2)
    np.testing.assert_array_equal(dst, [-2, 2])
    result = np.zeros(2, np.uint32)
    call("tile.bitwise_rshift", dst=result, src0=unsigned, scalarValue=31)
    np.testing.assert_array_equal(result, [1, 0])
    with pytest.raises(SimulatorError, match="32 bits"):
        call("tile.bitwise_lshift", dst=dst, src0=signed, scalarValue=32)


def test_pow(call: Any) -> None:
    dst = blank(X)
    call("tile.pow", dst=dst, src0=POSITIVE, src1=Y)
    np.testing.assert_allclose(dst, POSITIVE**Y, rtol=1e-6)


def test_clamps_leave_what_is_behind_the_count(call: Any) -> None:
    dst = np.full(8, 9, np.float32)
    call("tile.clamp", out=dst, buffer=X.reshape(8), min_scalar=-1.0, max_scalar=2.0, count=5)
    np.testing.assert_array_equal(dst, [-1, -0.5, 0.5, 2, 1, 9, 9, 9])
    call("tile.clamp_max", out=dst, buffer=X.reshape(8), scalar_value=0.0, count=2)
    np.testing.assert_array_equal(dst[:3], [-2, -0.5, 0.5])
    call("tile.clamp_min", out=dst, buffer=X.reshape(8), scalar_value=0.0, count=2)
    np.testing.assert_array_equal(dst[:3], [0, 0, 0.5])


def test_a_count_may_reach_beyond_the_region_but_not_the_buffer(call: Any, region: Any) -> None:
    whole, result = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    for extra in (6, 8):
        call(
            "tile.clamp_max",
            out=region(result, (1, 0), (1, 4)),
            buffer=region(whole, (1, 0), (1, 4)),
            scalar_value=7.0,
            count=extra,
        )
    np.testing.assert_array_equal(result.reshape(-1), [0, 0, 0, 0, 4, 5, 6, 7, 7, 7, 7, 7])
    with pytest.raises(SimulatorError, match="out-of-bounds access: 9 elements"):
        call(
            "tile.clamp_max",
            out=region(result, (1, 0), (1, 4)),
            buffer=region(whole, (1, 0), (1, 4)),
            scalar_value=7.0,
            count=9,
        )


def test_round_takes_halves_to_even(call: Any) -> None:
    dst = np.zeros(4, np.float32)
    call("tile.round", out=dst, buffer=np.array([0.5, 1.5, -2.5, 2.4], np.float32), count=4)
    np.testing.assert_array_equal(dst, [0, 2, -2, 2])


def test_constants(call: Any) -> None:
    dst = np.zeros((2, 4), np.uint32)
    call("tile.fill", buffer=dst, value=-1)
    assert (dst == 2**32 - 1).all()
    call("tile.clear", buffer=dst)
    assert not dst.any()
    half = np.zeros(4, np.float16)
    call("tile.fill", buffer=half, value=-np.inf)
    assert np.isneginf(half).all()
