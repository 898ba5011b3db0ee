"""float16 has every value of the 8-bit floats that ``--fp8 float16`` replaces."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tl2npu.dialects.fp8 import HELD, LARGEST, held

# name: bits of the exponent, of the mantissa, bias, how infinities and NaN are written
FORMATS = {
    "float8_e3m4": (3, 4, 3, "ieee"),
    "float8_e4m3": (4, 3, 7, "ieee"),
    "float8_e4m3fn": (4, 3, 7, "all ones"),
    "float8_e4m3fnuz": (4, 3, 8, "minus zero"),
    "float8_e4m3b11fnuz": (4, 3, 11, "minus zero"),
    "float8_e5m2": (5, 2, 15, "ieee"),
    "float8_e5m2fnuz": (5, 2, 16, "minus zero"),
}


def decoded(byte: int, exponent: int, mantissa: int, bias: int, special: str) -> float:
    """The value of a byte, by the definition of its format."""
    sign = -1.0 if byte >> 7 else 1.0
    e, m = byte >> mantissa & ((1 << exponent) - 1), byte & ((1 << mantissa) - 1)
    full = (1 << exponent) - 1
    if special == "minus zero" and byte == 0x80:
        return float("nan")
    if special == "all ones" and byte & 0x7F == 0x7F:
        return float("nan")
    if special == "ieee" and e == full:
        return float("nan") if m else sign * float("inf")
    fraction = m / (1 << mantissa)
    return sign * (fraction * 2.0 ** (1 - bias) if e == 0 else (1 + fraction) * 2.0 ** (e - bias))


@pytest.mark.parametrize("name", FORMATS)
def test_float16_has_all_256_values(name: str) -> None:
    values = np.array([decoded(byte, *FORMATS[name]) for byte in range(256)])
    np.testing.assert_array_equal(values.astype(np.float16).astype(np.float64), values)
    stored = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))  # what the simulator computes with
    np.testing.assert_array_equal(stored.astype(np.float16).astype(np.float64), values)
    np.testing.assert_array_equal(np.signbit(stored.astype(np.float16)[values == 0]), np.signbit(values[values == 0]))


@pytest.mark.parametrize("name", LARGEST)
def test_largest_values(name: str) -> None:
    values = np.array([decoded(byte, *FORMATS[name]) for byte in range(256)])
    assert LARGEST[name] == values[np.isfinite(values)].max()


def test_no_other_type_is_held() -> None:
    assert set(HELD.values()) == set(FORMATS)
    assert held("torch.float8_e5m2") == held("e5m2_float8") == "float8_e5m2"
    others = ["float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn", "float16", "int8", "fp8", None]
    assert [name for name in others if held(name)] == []
    scales = np.arange(255, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
    assert (scales.astype(np.float16).astype(np.float64) != scales.astype(np.float64)).sum() > 200
