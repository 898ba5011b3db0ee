"""The arithmetic of the element types: every operation rounds to its type; matrix products sum in fp32 or int32."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tl2npu.dialects.functions import IN_FLOATS
from tl2npu.simulator.arithmetic.erf import erf
from tl2npu.simulator.ir import dtypes

Array = Any
"""A NumPy array or scalar."""


def away_from_zero(x: Any) -> Any:
    """To the nearest whole number, halves away from zero; adding a half first would round the sum."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):  # of an infinity
        return np.where(abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(np.asarray(x).dtype)


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A float32 function for narrower floats: computed in fp32, rounded once."""

    def computed(x: Array) -> Array:
        kind = getattr(x, "dtype", None)
        if kind is None:
            return np.float32(function(np.float64(x)))
        if kind.itemsize < 4:
            return function(np.asarray(x, np.float32)).astype(kind)
        return function(x)

    return computed


def _wide_pair(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function of two operands."""

    def computed(x: Array, y: Array) -> Array:
        kind = np.asarray(x).dtype
        if kind.itemsize < 4 and dtypes.is_float(_name(kind)):
            return function(np.asarray(x, np.float32), np.asarray(y, np.float32)).astype(kind)
        return function(x, y)

    return computed


class Precise:
    """See the module. Methods take and give arrays or NumPy scalars of one element type."""

    name = "precise"

    add = staticmethod(operator.add)
    sub = staticmethod(operator.sub)
    mul = staticmethod(operator.mul)
    neg = staticmethod(operator.neg)
    exp10 = staticmethod(_wide(lambda x: np.power(np.float32(10), x)))
    rsqrt = staticmethod(_wide(lambda x: 1 / np.sqrt(x)))
    reciprocal = staticmethod(_wide(lambda x: 1 / x))
    asin = staticmethod(_wide(np.arcsin))
    acos = staticmethod(_wide(np.arccos))
    atan = staticmethod(_wide(np.arctan))
    asinh = staticmethod(_wide(np.arcsinh))
    acosh = staticmethod(_wide(np.arccosh))
    atanh = staticmethod(_wide(np.arctanh))
    erf = staticmethod(_wide(erf))
    sigmoid = staticmethod(_wide(lambda x: 1 / (1 + np.exp(-x))))
    silu = staticmethod(_wide(lambda x: x / (1 + np.exp(-x))))
    round = staticmethod(_wide(away_from_zero))
    nearbyint = staticmethod(_wide(np.rint))
    isnan = staticmethod(np.isnan)
    isinf = staticmethod(np.isinf)
    isfinite = staticmethod(np.isfinite)

    @staticmethod
    def div(x: Array, y: Array) -> Array:
        """The quotient; integers truncate as the hardware does."""
        if getattr(x, "dtype", np.dtype(np.float32)).kind in "iu" and getattr(y, "dtype", np.dtype(int)).kind in "iu":
            quotient = np.abs(x) // np.abs(y)
            return np.where((np.asarray(x) < 0) != (np.asarray(y) < 0), -quotient, quotient).astype(np.asarray(x).dtype)
        return np.divide(x, y)

    @staticmethod
    def maximum(x: Array, y: Array) -> Array:
        """The larger; NaN if one is NaN."""
        return np.maximum(x, y)

    @staticmethod
    def minimum(x: Array, y: Array) -> Array:
        """The smaller; NaN if one is NaN."""
        return np.minimum(x, y)

    number_maximum = staticmethod(np.fmax)
    number_minimum = staticmethod(np.fmin)
    """The same, but the number if one is NaN: what a GPU does."""

    @staticmethod
    def number_max(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The largest along an axis that is no NaN."""
        return np.fmax.reduce(x, axis=axis)

    @staticmethod
    def number_min(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The smallest along an axis that is no NaN."""
        return np.fmin.reduce(x, axis=axis)

    @staticmethod
    def absolute(x: Array) -> Array:
        """The magnitude."""
        return np.abs(x)

    fabs = absolute

    @staticmethod
    def pow(x: Array, y: Array) -> Array:
        """The power, through fp32 for narrow floats."""
        kind = np.asarray(x).dtype
        if kind.kind in "iu" or kind.itemsize >= 4:
            return np.power(x, y)
        return np.power(np.asarray(x, np.float32), np.asarray(y, np.float32)).astype(kind)

    atan2 = staticmethod(_wide_pair(np.arctan2))
    fmod = staticmethod(_wide_pair(np.fmod))
    copysign = staticmethod(_wide_pair(np.copysign))

    @staticmethod
    def storage(dtype: str) -> np.dtype:
        """The NumPy type that a buffer of an element type is kept in."""
        return dtypes.numpy_dtype(dtype)

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant of an element type."""
        return dtypes.numpy_dtype(dtype).type(value)

    @staticmethod
    def literal(value: Any, like: np.ndarray) -> Any:
        """A Python number in the type of an array; integers wrap around."""
        if like.dtype.kind in "iu":
            return np.asarray(int(value)).astype(like.dtype)[()]
        return like.dtype.type(value)

    @staticmethod
    def like(value: Any, array: np.ndarray) -> Any:
        """A number (a Python number or one of this arithmetic) in the type of an array."""
        kind = getattr(value, "dtype", None)
        if kind is None or isinstance(value, int):  # what T.min gives of two numbers is one, with a type
            return Precise.literal(value, array)
        return value if kind == array.dtype else Precise.cast(value, array.dtype.name)

    @staticmethod
    def is_float(array: Array) -> bool:
        """True for an array of floats, of any width."""
        return dtypes.is_float(array.dtype.name)

    @staticmethod
    def same_bits(array: np.ndarray, dtype: str) -> np.ndarray:
        """The memory of a dense array as elements of another type (bytes, halves, indices), flat; no copy."""
        return array.reshape(-1).view(dtypes.numpy_dtype(dtype))

    @staticmethod
    def reinterpret(x: Array, source: str, dtype: str) -> Array:
        """The bits of a value of type ``source`` as a value of another type."""
        return np.asarray(x, dtypes.numpy_dtype(source)).view(dtypes.numpy_dtype(dtype))[()]

    @staticmethod
    def name_of(array: np.ndarray) -> str:
        """The element type of an array."""
        return _name(array.dtype)

    @staticmethod
    def accumulate(total: np.ndarray, value: np.ndarray) -> None:
        """``total += value``, the sum in the type of ``value`` (fp32 for narrow floats), rounded once."""
        np.add(total, value, out=total, casting="unsafe")

    @staticmethod
    def poison(dtype: str) -> Any:
        """What memory holds before it is written: NaN, and a large odd value for integers."""
        if dtypes.is_float(dtype):
            kind = dtypes.numpy_dtype(dtype)
            return kind.type(np.nan) if "e8m0" not in dtype and "e2m1" not in dtype else kind.type(1)
        if dtype == "bool":
            return True
        if dtypes.bits(dtype) == 4:
            return 7
        return np.iinfo(dtypes.numpy_dtype(dtype)).max - 84

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type. Float to integer by ``mode``: trunc, rint, floor, ceil, round (half away from zero)."""
        kind = dtypes.numpy_dtype(dtype)
        source = getattr(x, "dtype", None)
        if source is None:
            return kind.type(x)
        if dtypes.is_integer(dtype) and source.kind not in "iub":
            return _saturated(_ROUND[mode](np.asarray(x, np.float64)), kind)
        if kind == source:
            return x
        return x.astype(kind)

    @staticmethod
    def convert(x: Array, dtype: str, mode: str) -> Array:
        """Ascend's vector cast: none, rint, floor, ceil, round, trunc or odd, also to a narrower float.

        Integers saturate. A float of the same type is rounded to a whole number (except ``none``). ``odd`` cuts off and
        sets the last bit of what is not exact.
        """
        kind, source = dtypes.numpy_dtype(dtype), x.dtype
        if dtypes.is_integer(source.name) or source.kind == "b":
            if dtypes.is_integer(dtype):
                limits = np.iinfo(kind)
                return np.clip(x, max(limits.min, _least(source)), min(limits.max, _largest(source))).astype(kind)
            return _narrow(x, kind, mode)
        if dtypes.is_integer(dtype):
            return Precise.cast(x, dtype, "rint" if mode == "none" else mode)
        if kind == source:
            return x if mode == "none" else _ROUND[mode](x).astype(kind)
        return x.astype(kind) if kind.itemsize > source.itemsize else _narrow(x, kind, mode)

    @staticmethod
    def multiply_add(x: Array, y: Array, z: Array) -> Array:
        """``x * y + z``, rounded once."""
        kind = z.dtype
        if dtypes.is_integer(kind.name):
            return x * y + z
        wide = np.float64 if kind.itemsize >= 4 else np.float32
        return (np.asarray(x, wide) * np.asarray(y, wide) + np.asarray(z, wide)).astype(kind)

    @staticmethod
    def descending(x: np.ndarray) -> np.ndarray:
        """The positions that put the last axis into descending order; equal elements keep theirs."""
        keys = x.astype(np.float64) if dtypes.is_float(x.dtype.name) else x.astype(np.int64)
        return np.argsort(-keys, axis=-1, kind="stable")

    @staticmethod
    def argmax(x: np.ndarray) -> np.ndarray:
        """The first position of the largest element along the last axis."""
        return np.asarray(np.argmax(x, axis=-1))

    @staticmethod
    def argmin(x: np.ndarray) -> np.ndarray:
        """The first position of the smallest element along the last axis."""
        return np.asarray(np.argmin(x, axis=-1))

    @staticmethod
    def factor(x: np.ndarray) -> np.ndarray:
        """The same numbers in the type that products of matrices are computed in."""
        return x.astype(np.float32) if dtypes.is_float(x.dtype.name) and x.dtype.itemsize < 4 else x

    @staticmethod
    def matmul(x: Array, y: Array, dtype: str) -> Array:
        """The product of two matrices, summed in fp32 (float32 operands too) or exactly for integers."""
        if dtypes.is_float(dtype):
            wide = np.float64 if dtype == "float64" else np.float32
            return np.matmul(x.astype(wide, copy=False), y.astype(wide, copy=False))
        if x.dtype.itemsize > 2 or y.dtype.itemsize > 2:
            return np.matmul(x.astype(np.int64), y.astype(np.int64))
        return np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.int64)  # exact up to 2**21 terms

    @staticmethod
    def sum(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The sum along an axis; narrow floats sum in fp32 and round once."""
        kind = x.dtype
        if kind.kind in "iub":
            return x.sum(axis=axis)
        if kind.itemsize >= 4:
            return x.sum(axis=axis)
        return x.astype(np.float32).sum(axis=axis).astype(kind)

    @staticmethod
    def cumsum(x: Array, axis: int) -> Array:
        """Running sums."""
        if x.dtype.kind in "iu":
            return np.cumsum(x, axis=axis, dtype=x.dtype)
        if x.dtype.itemsize >= 4:
            return np.cumsum(x, axis=axis)
        return np.cumsum(x.astype(np.float32), axis=axis).astype(x.dtype)

    @staticmethod
    def max(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The largest along an axis."""
        return x.max(axis=axis)

    @staticmethod
    def min(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The smallest along an axis."""
        return x.min(axis=axis)

    @staticmethod
    def less(x: Array, y: Array) -> Array:
        """``x < y``."""
        return x < y

    @staticmethod
    def less_equal(x: Array, y: Array) -> Array:
        """``x <= y``."""
        return x <= y

    @staticmethod
    def equal(x: Array, y: Array) -> Array:
        """``x == y``."""
        return x == y

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        """``x`` where the condition holds, else ``y``."""
        return np.where(condition, x, y)

    @staticmethod
    def from_host(array: np.ndarray, dtype: str) -> np.ndarray:
        """A tensor of the caller as the kernel sees it: the same memory."""
        return array

    @staticmethod
    def to_host(array: np.ndarray, dtype: str) -> np.ndarray:
        """The reverse of ``from_host``."""
        return array

    @staticmethod
    def bring_back(array: np.ndarray, held: np.ndarray, dtype: str) -> None:
        """Writes what the kernel changed into the caller's tensor: they are the same memory."""


def _saturated(whole: Any, kind: np.dtype) -> Any:
    """Whole numbers (float64) as integers; what is too large becomes the largest, NaN 0."""
    limits: Any = ml_dtypes.iinfo(kind)  # type: ignore[no-untyped-call]
    least, largest = int(limits.min), int(limits.max)
    high, low = whole >= float(largest), whole < least
    result = np.where(high | low | (whole != whole), 0.0, whole).astype(kind)
    result[high] = largest
    result[low] = least
    return result[()]


@functools.cache
def _name(kind: np.dtype) -> str:
    return kind.name


_ROUND: dict[str, Callable[[Any], Any]] = {
    "trunc": np.trunc,
    "rint": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": away_from_zero,
}
"""Float to whole number; ``odd`` is not among them: the vector cast has it for floats only."""


def _least(kind: np.dtype) -> int:
    return 0 if kind.kind == "b" else int(np.iinfo(kind).min)


def _largest(kind: np.dtype) -> int:
    return 1 if kind.kind == "b" else int(np.iinfo(kind).max)


def _narrow(x: np.ndarray, kind: np.dtype, mode: str) -> np.ndarray:
    """Numbers as floats of a type that cannot hold all of them, rounded by mode."""
    nearest = x.astype(kind)
    if mode in ("none", "rint"):
        return nearest
    exact, found = x.astype(np.float64), nearest.astype(np.float64)
    if mode == "floor":
        return np.where(found > exact, np.nextafter(nearest, kind.type(-np.inf)), nearest).astype(kind)
    if mode == "ceil":
        return np.where(found < exact, np.nextafter(nearest, kind.type(np.inf)), nearest).astype(kind)
    inward = np.where(abs(found) > abs(exact), np.nextafter(nearest, kind.type(0)), nearest).astype(kind)
    if mode == "trunc":
        return inward
    low = inward.astype(np.float64)
    if mode == "round":
        outward = np.nextafter(inward, np.copysign(np.float64(np.inf), exact).astype(kind)).astype(kind)
        tie = (abs(exact - low) == abs(outward.astype(np.float64) - exact)) & (low != exact)
        return np.where(tie, outward, nearest).astype(kind)
    bits = inward.view(f"u{kind.itemsize}")
    return np.where((low != exact) & np.isfinite(exact), bits | 1, bits).astype(bits.dtype).view(kind)


for _function in IN_FLOATS:
    if not hasattr(Precise, _function):
        setattr(Precise, _function, staticmethod(_wide(getattr(np, _function))))
