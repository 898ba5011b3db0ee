"""Powers of two made of the bits of a float, against the same bits in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, agree, gpu_file, migrated, result_of
from tests.passes.simulated import run

PARAMS = "X: T.Tensor((128, 64), 'float32'), Y: T.Tensor((128, 64), 'float32')"
BODY = """
x = T.alloc_fragment((64, 64), "float32")
y = T.alloc_fragment((64, 64), "float32")
T.copy(X[bx * 64, 0], x)
for i, j in T.Parallel(64, 64):
{0}
T.copy(y, Y[bx * 64, 0])
"""
WITH_NAMES = """\
    bits = T.reinterpret(x[i, j] * 0.25, "uint32")
    exponent = (bits >> 23) & 0xFF
    rest = bits & ((1 << 23) - 1)
    up = T.Cast("int32", exponent - 127 + T.if_then_else(rest != 0, 1, 0))
    y[i, j] = T.reinterpret((up + 127) << 23, "float32")"""
IN_ONE = """\
    y[i, j] = T.reinterpret(
        T.cast(((T.reinterpret(x[i, j] * 0.25, "uint32") >> 23) & 255)
        + T.if_then_else((T.reinterpret(x[i, j] * 0.25, "uint32") & 0x7FFFFF) > 0, 1, 0), "uint32") << 23, "float32")"""
DOWN = """\
    bits = T.reinterpret(x[i, j] * 0.25, "int32")
    y[i, j] = T.reinterpret(bits & (0xFF << 23), "float32")"""


def text_of(body: str) -> str:
    return gpu_file(PARAMS, BODY.format(body))


def inputs() -> np.ndarray:
    """Every fourth power of two of the whole range, its neighbours, signs, and numbers in between."""
    powers = np.ldexp(np.float32(1), np.arange(-120, 124, 4)).astype(np.float32)
    near = [powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf)), powers * 1.37]
    values = np.concatenate(near)
    return np.resize(np.concatenate([values, -values, [0.0, np.inf]]).astype(np.float32), (128, 64))


def rounded(x: np.ndarray, up: bool) -> np.ndarray:
    """The power of two, by NumPy's exact fraction and exponent."""
    fraction, exponent = np.frexp(np.abs(x * np.float32(0.25)))
    power = exponent - (fraction == 0.5) if up else exponent - 1
    exact = np.ldexp(np.float32(1), power)
    return np.where(x == 0, 0, np.where(np.isinf(x), np.inf, exact)).astype(np.float32)


@pytest.mark.parametrize(
    ("body", "up"), [(WITH_NAMES, True), (IN_ONE, True), (DOWN, False)], ids=["names", "one", "down"]
)
def test_bit_for_bit(body: str, up: bool) -> None:
    x = inputs()
    new = migrated(text_of(body))
    assert "reinterpret" not in new
    np.testing.assert_array_equal(run(new, {"X": x})["Y"], rounded(x, up))
    agree(text_of(body), {"X": x}, rtol=0, atol=0)


def test_in_helpers_of_the_file() -> None:
    head = IMPORTS + (
        "def up(x):\n    bits = T.reinterpret(x, T.uint32)\n    rest = bits & ((1 << 23) - 1)\n"
        "    return T.cast(((bits >> 23) & 0xFF) - 127 + T.if_then_else(rest != 0, 1, 0), T.int32)\n\n\n"
        "def power(k):\n    return T.reinterpret((k + 127) << 23, T.float32)\n\n\n"
    )
    text = gpu_file(PARAMS, BODY.format("    y[i, j] = power(up(x[i, j] * 0.25))"), head=head)
    np.testing.assert_array_equal(run(migrated(text), {"X": inputs()})["Y"], rounded(inputs(), up=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rest != 0, 1, 0", "rest > 1, 1, 0"),  # wrong for one mantissa
        ("rest != 0, 1, 0", "rest != 5555556, 1, 0"),
        ("exponent - 127", "exponent - 126"),
        ("& 0xFF", "& 0x1FF"),  # other numbers for negative ones
        ("T.reinterpret((up", "T.reinterpret(T.max(up, 3) - up + (up"),
    ],
)
def test_what_is_another_function_stays(old: str, new: str) -> None:
    text = text_of(WITH_NAMES.replace(old, new))
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]


def test_a_name_that_is_used_elsewhere_stays_too() -> None:
    text = text_of(WITH_NAMES + "\n    x[i, j] = T.cast(exponent, 'float32')")
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]
