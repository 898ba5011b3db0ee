"""No arithmetic on floats at all: shapes, control flow, copies, synchronisation and hazards only.

A float is two bytes that say whether something was written: 0 for a value, 1 for memory that nobody wrote; what is
computed from the latter is the latter. Integers are computed as ever, so loops, indices and masks are what they are.
A comparison of floats is false, a float converted to an integer is 0, the position of a largest element is 0: where
control flow or an index depends on such a value, another way than the real one may be taken. Results for the caller
are 0 where the kernel wrote a float.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.dialects.functions import IN_FLOATS
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.simulator.ir import dtypes

Array = Any
"""Floats are kept in arrays of two 1-byte fields: NumPy refuses arithmetic on them. The first has the type's name."""

_UNWRITTEN = np.uint16(1)


@functools.cache
def _storage(dtype: str) -> np.dtype:
    return np.dtype([(dtype, np.uint8), ("high", np.uint8)])


def _is_float(x: Any) -> bool:
    kind = getattr(x, "dtype", None)
    return kind is not None and kind.names is not None


def _raw(x: Array) -> Any:
    return np.asarray(x).view(np.uint16)


def _shape_only(name: str) -> Any:
    """An elementwise function: the shape that the operands have together."""

    def computed(*operands: Array) -> Array:
        floats = [x for x in operands if _is_float(x)]
        if not floats:
            return getattr(Precise, name)(*operands)
        raw = functools.reduce(np.bitwise_or, (_raw(x) for x in floats))
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
        return np.array(np.broadcast_to(raw, shape)).view(floats[0].dtype)

    return staticmethod(computed)


def _never(name: str) -> Any:
    """A comparison or test: false everywhere."""

    def computed(*operands: Array) -> Any:
        if not any(_is_float(x) for x in operands):
            return getattr(Precise, name)(*operands)
        return np.zeros(np.broadcast_shapes(*(np.shape(x) for x in operands)), bool)[()]

    return staticmethod(computed)


def _along(name: str, combine: Callable[..., Any] = np.bitwise_or.reduce) -> Any:
    """A function along an axis."""

    def computed(x: Array, axis: Any) -> Array:
        if not _is_float(x):
            return getattr(Precise, name)(x, axis)
        return np.asarray(combine(_raw(x), axis=axis), np.uint16).view(x.dtype)

    return staticmethod(computed)


def _position(name: str) -> Any:
    """The position of an extreme element along the last axis: 0."""
    return staticmethod(lambda x: np.zeros(x.shape[:-1], np.int64) if _is_float(x) else getattr(Precise, name)(x))


class Structure:
    """See the module. The methods are those of ``Precise``."""

    name = "structure"

    @staticmethod
    def isfinite(x: Array) -> Any:
        """True everywhere."""
        return np.ones(np.shape(x), bool)[()] if _is_float(x) else Precise.isfinite(x)

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        """``x`` where the condition holds, else ``y``."""
        if not _is_float(x):
            return Precise.where(condition, x, y)
        return np.asarray(np.where(condition, _raw(x), _raw(y)), np.uint16).view(x.dtype)

    @staticmethod
    def descending(x: Array) -> Any:
        """The positions as they are."""
        if not _is_float(x):
            return Precise.descending(x)
        return np.broadcast_to(np.arange(x.shape[-1]), x.shape).copy()

    @staticmethod
    def matmul(x: Array, y: Array, dtype: str) -> Array:
        """The shape of the product; unwritten rows and columns stay so."""
        if not _is_float(x) and not _is_float(y):
            return Precise.matmul(x, y, dtype)
        rows = np.bitwise_or.reduce(_raw(x), axis=-1)[..., :, None]
        columns = np.bitwise_or.reduce(_raw(y), axis=-2)[..., None, :]
        return np.asarray(rows | columns, np.uint16).view(_storage(dtype))

    @staticmethod
    def accumulate(total: Array, value: Array) -> None:
        """``total += value``."""
        if _is_float(total):
            total[...] = (_raw(total) | _raw(value)).view(total.dtype)
        else:
            Precise.accumulate(total, value)

    @staticmethod
    def factor(x: Array) -> Array:
        """Nothing to convert."""
        return x

    @staticmethod
    def storage(dtype: str) -> np.dtype:
        """The NumPy type that a buffer of an element type is kept in."""
        return _storage(dtype) if dtypes.is_float(dtype) else Precise.storage(dtype)

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant of an element type."""
        return np.zeros((), _storage(dtype))[()] if dtypes.is_float(dtype) else Precise.number(value, dtype)

    @staticmethod
    def literal(value: Any, like: Array) -> Any:
        """A Python number in the type of an array."""
        return np.zeros((), like.dtype)[()] if _is_float(like) else Precise.literal(value, like)

    @staticmethod
    def like(value: Any, array: Array) -> Any:
        """A number (a Python number or one of this arithmetic) in the type of an array."""
        if getattr(value, "dtype", None) is None:
            return Structure.literal(value, array)
        return value if value.dtype == array.dtype else Structure.cast(value, Structure.name_of(array))

    @staticmethod
    def is_float(array: Array) -> bool:
        """True for an array of floats."""
        return _is_float(array)

    @staticmethod
    def name_of(array: Array) -> str:
        """The element type of an array."""
        return str(array.dtype.names[0]) if _is_float(array) else Precise.name_of(array)

    @staticmethod
    def same_bits(array: Array, dtype: str) -> Array:
        """The memory of integers as elements of another type. Floats have no bits: UnsupportedOperator."""
        if _is_float(array) and dtype == Structure.name_of(array):
            return array.reshape(-1)
        if _is_float(array) or dtypes.is_float(dtype):
            raise UnsupportedOperator("the bits of floats have no meaning in the structure mode")
        return Precise.same_bits(array, dtype)

    @staticmethod
    def reinterpret(x: Array, source: str, dtype: str) -> Array:
        """The bits of a value as another type. Floats have no bits: UnsupportedOperator."""
        if source == dtype:
            return x
        if dtypes.is_float(source) or dtypes.is_float(dtype):
            raise UnsupportedOperator("the bits of floats have no meaning in the structure mode")
        return Precise.reinterpret(x, source, dtype)

    @staticmethod
    def poison(dtype: str) -> Any:
        """What memory holds before it is written."""
        return np.array(_UNWRITTEN).view(_storage(dtype))[()] if dtypes.is_float(dtype) else Precise.poison(dtype)

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type: integers that were floats are 0."""
        if _is_float(x):
            if dtypes.is_float(dtype):
                return np.array(_raw(x)).view(_storage(dtype))
            return np.zeros(np.shape(x), dtypes.numpy_dtype(dtype))[()]
        return np.zeros(np.shape(x), _storage(dtype))[()] if dtypes.is_float(dtype) else Precise.cast(x, dtype, mode)

    @staticmethod
    def convert(x: Array, dtype: str, mode: str) -> Array:
        """Ascend's vector cast."""
        if _is_float(x) or dtypes.is_float(dtype):
            return Structure.cast(x, dtype)
        return Precise.convert(x, dtype, mode)

    @staticmethod
    def from_host(array: np.ndarray, dtype: str) -> Array:
        """A tensor of the caller as the kernel sees it: a value everywhere but where it holds NaN."""
        if not dtypes.is_float(dtype):
            return array
        return (array != array).astype(np.uint16).view(_storage(dtype))

    @staticmethod
    def to_host(array: Array, dtype: str) -> np.ndarray:
        """0 for a value, NaN for memory that nobody wrote."""
        if not _is_float(array):
            return np.asarray(array)
        return np.where(_raw(array) != 0, np.nan, 0.0).astype(dtypes.numpy_dtype(dtype))

    @staticmethod
    def bring_back(array: np.ndarray, held: Array, dtype: str) -> None:
        """Writes 0 where a tensor held NaN and the kernel wrote; what else it holds stays as it is."""
        if _is_float(held):
            array[(array != array) & (_raw(held) == 0)] = dtypes.numpy_dtype(dtype).type(0)


_ELEMENTWISE = (
    *IN_FLOATS,
    *("add", "sub", "mul", "div", "neg", "reciprocal", "multiply_add", "maximum", "minimum", "number_maximum"),
    *("number_minimum", "absolute", "fabs", "pow", "atan2", "fmod", "copysign", "asin", "acos", "atan", "asinh"),
    *("acosh", "silu", "nearbyint"),
)
for _name in _ELEMENTWISE:
    setattr(Structure, _name, _shape_only(_name))
for _name in ("isnan", "isinf", "less", "less_equal", "equal"):
    setattr(Structure, _name, _never(_name))
for _name in ("sum", "max", "min", "number_max", "number_min"):
    setattr(Structure, _name, _along(_name))
Structure.cumsum = _along("cumsum", np.bitwise_or.accumulate)  # type: ignore[attr-defined]
for _name in ("argmax", "argmin"):
    setattr(Structure, _name, _position(_name))
