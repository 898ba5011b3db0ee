"""The 8-bit floats, and what float16 makes of them.

Every value of the types below, with infinities and NaN, is a value of float16: at most 3 bits of mantissa, exponents
from 2^-17 to 2^15 (tests/dialects/test_fp8.py goes through all 256 of each). ``float8_e8m0fnu`` reaches from 2^-127 to
2^127 and is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NAMES = "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
HELD: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in _NAMES.split()},
        "e4m3_float8": "float8_e4m3fn",
        "e4m3fn_float8": "float8_e4m3fn",
        "e5m2_float8": "float8_e5m2",
    }
)
"""Every spelling of a type whose values float16 has -> its name."""

LARGEST: Mapping[str, float] = MappingProxyType({"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0})
"""The largest finite value, where every library means the same by the name."""


def held(dtype: str | None) -> str:
    """The name of an 8-bit float whose every value is a float16; empty for all other types."""
    return "" if dtype is None else HELD.get(dtype.removeprefix("torch."), "")
