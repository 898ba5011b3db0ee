"""Ideal arithmetic: floats of any type are those of 64 bits, integers have their own width and wrap.

So that an old and a new kernel that compute the same in another order agree to about nine digits. Everything that a
number goes through is here: another arithmetic (a prime field) would be another module of these names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from tl2npu.dialects.functions import FUNCTIONS, NAMES
from tl2npu.kernel.element_types import plain

Numbers = np.ndarray[Any, Any]

LOST = 24301
"""Stands in memory of integers that nothing was stored in; floats have NaN there."""


def is_float(dtype: str) -> bool:
    """Any float, those of 8 bits among them."""
    return plain(dtype).startswith(("float", "bfloat", "tfloat"))


def bits(dtype: str) -> int:
    """Bits of an integer type; 0 for what is none that can be computed with."""
    digits = plain(dtype).removeprefix("u").removeprefix("int")
    return int(digits) if digits in ("8", "16", "32", "64") else 0


def width(dtype: str) -> int:
    """Bits of an element of a type, floats among them."""
    return int("".join(filter(str.isdigit, plain(dtype).partition("_")[0])) or 8)


@cache
def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy type of memory; raises ValueError for packed and unknown types."""
    if is_float(dtype):
        return np.dtype(np.float64)
    if plain(dtype) in ("bool", "int1", "uint1"):
        return np.dtype(np.bool_)
    if bits(dtype):
        return np.dtype(plain(dtype))
    raise ValueError(f"elements of type `{dtype}`")


def is_stored(dtype: str) -> bool:
    """Whether a name is that of a type with a :func:`storage`."""
    try:
        storage(dtype)
    except ValueError:
        return False
    return True


def lost(shape: tuple[int, ...], dtype: str) -> Numbers:
    """Memory that nothing was stored in."""
    kind = storage(dtype)
    if kind.kind in "iu":
        return np.full(shape, LOST, np.int64).astype(kind)
    return np.full(shape, math.nan if kind.kind == "f" else False, kind)


def is_defined(values: Numbers) -> Numbers:
    """Where something was stored: no NaN, nor what stands for it in integers that can hold that."""
    return np.asarray(values != LOST if values.dtype.itemsize > 1 and values.dtype.kind in "iu" else values == values)


_ROUNDINGS: Mapping[str, Callable[[Numbers], Numbers]] = {
    "CAST_RINT": np.rint,
    "CAST_FLOOR": np.floor,
    "CAST_CEIL": np.ceil,
    "CAST_ROUND": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "CAST_TRUNC": np.trunc,
}


def rounded(values: Numbers, mode: str) -> Numbers:
    """Floats as whole numbers, as a mode of ``Cast`` rounds; as they are for ``CAST_NONE``."""
    return np.asarray(_ROUNDINGS[mode](values)) if mode in _ROUNDINGS else values


def cast(values: object, dtype: str, mode: str = "CAST_TRUNC") -> Numbers:
    """Values as an element type holds them; ``mode`` is how floats become integers."""
    found, kind = np.asarray(values), storage(dtype)
    if kind.kind in "iu" and found.dtype.kind == "f":
        found = np.nan_to_num(_ROUNDINGS.get(mode, np.trunc)(found), nan=LOST, posinf=2.0**62, neginf=-(2.0**62))
        found = np.clip(found, -(2.0**62), 2.0**62).astype(np.int64)
    return np.asarray(found != 0) if kind.kind == "b" else np.asarray(found.astype(kind))


BITS: Mapping[str, tuple[str, int, str]] = {
    "float16": ("uint16", 0, "float16"),
    "bfloat16": ("uint32", 16, "float32"),
    "float32": ("uint32", 0, "float32"),
}
"""How a float stands in an integer of NumPy, how far to the left, and what the whole is."""


def of_bits(values: object, dtype: str) -> Numbers:
    """The floats, of a type of :data:`BITS`, that integers are the bits of."""
    holder, shift, whole = BITS[plain(dtype)]
    placed = np.asarray(values).astype(np.int64) << shift
    return np.asarray(placed.astype(holder).view(whole).astype(np.float64))[()]


def divided(left: Numbers, right: Numbers) -> Numbers:
    """``left / right``."""
    return np.asarray(np.true_divide(left, right))[()]


def _erf(x: Numbers) -> Numbers:
    """By the formula that new kernels spell out: `x * (1 + erf(x))` shows each of its digits where it is 0, and how
    close it is has tests of its own (tests/dialects/test_functions.py)."""
    steps: dict[str, Any] = {"x": np.asarray(x, np.float64), "min": np.minimum, "max": np.maximum}
    for name, text in FUNCTIONS["erf"].steps:
        steps[name] = eval(text, {}, steps)
    return np.asarray(steps[""])


def _sigmoid(x: Numbers) -> Numbers:
    return 1.0 / (1.0 + np.exp(-np.asarray(x, np.float64)))


def _truncdiv(a: Numbers, b: Numbers) -> Numbers:
    return np.trunc(np.true_divide(a, b)).astype(np.int64)


def _within(function: Callable[[Numbers], Numbers]) -> Callable[[Numbers], Numbers]:
    """Infinite where float32 is."""

    def applied(x: Numbers) -> Numbers:
        found = np.asarray(function(x))
        return np.where(found > _LARGEST, np.inf, found)[()]

    return applied


_LARGEST = 3.4028234663852886e38
_OF_ONE: Mapping[str, Callable[..., Numbers]] = {
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "erf": _erf,
    "round": np.rint,
    "exp": _within(np.exp),
    "exp2": _within(np.exp2),
    "exp10": _within(lambda x: np.power(10.0, x)),
    "atanh": np.arctanh,
}
_OTHERS: Mapping[str, Callable[..., Any]] = {
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "power": np.power,
    "__pow": np.power,
    "fmod": np.fmod,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "truncdiv": _truncdiv,
    "truncmod": np.fmod,
    "indexdiv": np.floor_divide,
    "indexmod": np.mod,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "ceildiv": lambda a, b: -(-np.asarray(a) // b),
    "cdiv": lambda a, b: -(-np.asarray(a) // b),
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "likely": lambda x: x,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Not": np.logical_not,
    "any_of": lambda *values: np.any(values),
    "all_of": lambda *values: np.all(values),
    "Select": np.where,
    "if_then_else": np.where,
    "select": np.where,
    "ln": np.log,
}


def function(name: str) -> Callable[..., Any] | None:
    """A function of ``tilelang.language`` or of a meaning in the catalogue, by its name; None for an unknown one."""
    if name in _OTHERS:
        return _OTHERS[name]
    known = NAMES.get(name)
    return None if known is None else _OF_ONE.get(known) or getattr(np, known, None)


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "LT": np.less,
    "LE": np.less_equal,
}
"""By the modes of ``T.tile.compare``."""


def closest(dtype: str, least: bool) -> float | int:
    """The least or greatest number of an element type (``T.min_value``, ``T.max_value``)."""
    width = bits(dtype)
    if width:
        signed = not plain(dtype).startswith("u")
        low = -(1 << (width - 1)) if signed else 0
        return low if least else low + (1 << width) - 1
    ends = {"float16": 65504.0, "float8_e4m3": 448.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
    end = ends.get(plain(dtype), _LARGEST)
    return -end if least else end
