"""Names of element types: their NumPy types, sizes and promotion.

Promotion is TVM's (``BinaryOpMatchTypes`` in src/tir/op/op.cc): floats win over integers, more bits over fewer. A
Python number takes the type of its partner, as in some versions of TVM, if that has it. For others it is an int32 or a
float32: ``x * 2.0`` of float16 is then computed in float32.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

_ALIASES = {
    "float": "float32",
    "half": "float16",
    "double": "float64",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
    "float8_e4m3": "float8_e4m3fn",
    "e4m3fn_float8": "float8_e4m3fn",
    "float_e4m3": "float8_e4m3fn",
    "float_e5m2": "float8_e5m2",
    "tfloat32": "float32",
    "bfloat16_t": "bfloat16",
    "float16_t": "float16",
    "float32_t": "float32",
    "handle": "uint64",
}

_EXTENDED = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "int4",
        "uint4",
    )
    if hasattr(ml_dtypes, name)
}


@functools.cache
def canonical(name: str) -> str:
    """The canonical spelling of a type name: ``float`` is ``float32``. Raises TypeError for an unknown name."""
    plain = name.removeprefix("torch.")
    plain = _ALIASES.get(plain, plain)
    numpy_dtype(plain)
    return plain


@functools.cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy type of a canonical name. Raises TypeError for a type that the simulator has no numbers for."""
    found = _EXTENDED.get(name)
    try:
        return np.dtype(name) if found is None else found
    except TypeError:
        raise TypeError(f"element type {name!r} has no meaning in the simulator") from None


@functools.cache
def bits(name: str) -> int:
    """Bits of one element: 4 for ``int4``, 1 for ``bool``'s value but 8 as it is stored."""
    return 4 if name in ("int4", "uint4", "float4_e2m1fn") else numpy_dtype(name).itemsize * 8


@functools.cache
def limits(name: str) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    signed = not name.startswith("u")
    return (-(1 << bits(name) - 1) if signed else 0), (1 << bits(name) - signed) - 1


def holds(name: str, value: int) -> bool:
    """Whether an integer type has this number."""
    least, most = limits(name)
    return least <= value <= most


def whole(value: Any, name: str) -> Any:
    """A constant of a type that is none of floats. Raises ValueError where that does not have it, as TVM does."""
    if name == "bool":
        return bool(value)
    found = int(value)
    if found < 0 and name.startswith("u"):
        raise ValueError(f"cannot make uint from negative value {found}")
    if not holds(name, found):
        raise ValueError(f"Literal value {found} exceeds {'maximum' if found > 0 else 'minimum'} of {name}")
    return found


def is_float(name: str) -> bool:
    """True for floating point, also bfloat16 and the 8-bit and 4-bit floats."""
    return name.startswith(("float", "bfloat"))


def is_integer(name: str) -> bool:
    """True for signed and unsigned integers, not for bool."""
    return name.startswith(("int", "uint"))


@functools.cache
def promote(left: str, right: str) -> str:
    """The type in which ``left`` and ``right`` meet (TVM: ``BinaryOpMatchTypes``, src/tir/op/op.cc)."""
    if left == right:
        return left
    if is_float(left) != is_float(right):
        return left if is_float(left) else right
    if is_float(left):
        return left if bits(left) >= bits(right) else right
    if "bool" in (left, right):
        return right if left == "bool" else left
    if bits(left) != bits(right):
        return left if bits(left) > bits(right) else right
    return left if left.startswith("u") else right
