"""Python numbers beside elements of integer types that do not have them, as TVM sees them: an int32 beside a uint8."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import load
from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.ir.dtypes import promote

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
TEXT = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def kern():
    @T.prim_func
    def main(X: T.Tensor((1, 32), "{dtype}"), Y: T.Tensor((1, 32), "{dtype}")):
        with T.Kernel(1, threads=128) as b:
            t = T.alloc_shared((1, 32), "{dtype}")
            T.copy(X[0, 0], t)
            {statement}
            T.copy(t, Y[0, 0])

    return main
"""
ELEMENTS = "for i, j in T.Parallel(1, 32): t[i, j] = "


def made(dtype: str, statement: str, value: int = 3) -> int:
    kernel = load(TEXT.format(dtype=dtype, statement=statement))["kern"]()
    return int(kernel(np.full((1, 32), value, dtype))[0, 5])


@pytest.mark.parametrize("dtype", INTEGERS[:4])
def test_a_number_that_the_type_lacks_makes_32_bits_of_it(dtype: str) -> None:
    def cut(value: int) -> int:
        return int(np.array(value).astype(dtype))

    for text, value in {
        "t[i, j] + 300": 303,
        "t[i, j] * -1": -3,
        "t[i, j] - 70000": -69997,
        "(t[i, j] - 4) * 100": -100,
        "300 >> t[i, j]": 37,
        "(t[i, j] * 1000) // 7": 428,
        "T.max(t[i, j], -1)": 3,
        "T.min(t[i, j], 400)": 3,
        "T.if_then_else(t[i, j] > -1, 1, 2)": 1,
        "T.if_then_else(t[i, j] == 259, 1, 2)": 2,
        "T.if_then_else(t[i, j] > 5, 1, -1)": -1,
    }.items():
        assert made(dtype, ELEMENTS + text) == cut(value), text


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_constant_is_one_of_the_type(dtype: str) -> None:
    """The front end refuses the others: `cannot make uint from negative value -1`, `exceeds maximum of int16`."""
    limits = np.iinfo(dtype)
    for value in (limits.min, limits.max):
        assert made(dtype, f"{ELEMENTS}{value}") == value
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        for text in (str(value), f"T.cast({value}, '{dtype}')"):
            with pytest.raises(TraceError, match=r"cannot make uint|exceeds m"):
                made(dtype, ELEMENTS + text)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_fill_wraps(dtype: str) -> None:
    assert made(dtype, "T.fill(t, -1)") == int(np.array(-1).astype(dtype))


def test_what_types_meet_in() -> None:
    for left, right, both in (
        ("int8", "uint16", "uint16"), ("uint8", "int32", "int32"), ("int32", "uint32", "uint32"),
        ("int8", "int16", "int16"), ("uint8", "uint32", "uint32"), ("bool", "int8", "int8"),
        ("int8", "float16", "float16"),
    ):  # fmt: skip
        assert promote(left, right) == promote(right, left) == both


def test_neutral_numbers_leave_a_float_as_it_is() -> None:
    """Minus zero, and NaN times 0.0, which is 0.0 for the compiler."""
    text = TEXT.format(dtype="float32", statement=ELEMENTS + "{}")
    for value in ("t[i, j] + 0.0", "0.0 + t[i, j] * 1", "t[i, j] / 1.0 - 0"):
        found = load(text.format(value))["kern"]()(np.full((1, 32), -0.0, np.float32))
        assert np.signbit(found).all(), value
    assert not load(text.format("t[i, j] * 0.0"))["kern"]()(np.full((1, 32), np.nan, np.float32)).any()
