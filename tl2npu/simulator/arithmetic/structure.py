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

from tl2npu.simulator.arithmetic.opaque import Array, Opaque, opaque
from tl2npu.simulator.ir import dtypes

_UNWRITTEN = np.uint16(1)


def _shape_only(*operands: Array) -> Array:
    """An elementwise function: the shape that the operands have together."""
    floats = [x for x in operands if opaque(x)]
    raw = functools.reduce(np.bitwise_or, map(Structure.raw, floats))
    shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
    return np.array(np.broadcast_to(raw, shape)).view(floats[0].dtype)


def _never(*operands: Array) -> Any:
    """A test that nothing passes."""
    return np.zeros(np.broadcast_shapes(*(np.shape(x) for x in operands)), bool)[()]


def _along(x: Array, axis: Any, combine: Callable[..., Any] = np.bitwise_or.reduce) -> Array:
    """A function along an axis."""
    return Structure.of(combine(Structure.raw(x), axis=axis), x.dtype)


def _first(x: Array) -> Any:
    """The position of an extreme element along the last axis: 0."""
    return np.zeros(x.shape[:-1], np.int64)


class Structure(Opaque):
    """See the module."""

    name = "structure"
    word = np.uint16

    isnan = isinf = less = less_equal = equal = staticmethod(_never)
    sum = max = min = number_max = number_min = staticmethod(_along)
    cumsum = functools.partial(_along, combine=np.bitwise_or.accumulate)
    argmax = argmin = staticmethod(_first)

    @staticmethod
    def otherwise(name: str) -> Callable[..., Any]:
        """All that works element by element."""
        return _shape_only

    @staticmethod
    def isfinite(x: Array) -> Any:
        """True everywhere."""
        return np.ones(np.shape(x), bool)[()]

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        """``x`` where the condition holds, else ``y``."""
        return Structure.of(np.where(condition, Structure.raw(x), Structure.raw(y)), x.dtype)

    @staticmethod
    def descending(x: Array) -> Any:
        """The positions as they are."""
        return np.broadcast_to(np.arange(x.shape[-1]), x.shape).copy()

    @staticmethod
    def matmul(x: Array, y: Array, dtype: str) -> Array:
        """The shape of the product; unwritten rows and columns stay so."""
        rows = np.bitwise_or.reduce(Structure.raw(x), axis=-1)[..., :, None]
        columns = np.bitwise_or.reduce(Structure.raw(y), axis=-2)[..., None, :]
        return Structure.of(rows | columns, dtype)

    @staticmethod
    def accumulate(total: Array, value: Array) -> None:
        """``total += value``."""
        total[...] = (Structure.raw(total) | Structure.raw(value)).view(total.dtype)

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant of an element type: a value."""
        return Structure.of(0, dtype)[()]

    @staticmethod
    def poison(dtype: str) -> Any:
        """What memory holds before it is written."""
        return Structure.of(_UNWRITTEN, dtype)[()]

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type: integers that were floats are 0."""
        if opaque(x) and dtypes.is_float(dtype):
            return Structure.of(np.array(Structure.raw(x)), dtype)
        return np.zeros(np.shape(x), Structure.storage(dtype))[()]

    @staticmethod
    def convert(x: Array, dtype: str, mode: str) -> Array:
        """Ascend's vector cast."""
        return Structure.cast(x, dtype)

    @staticmethod
    def from_host(array: np.ndarray, dtype: str) -> Array:
        """A tensor of the caller as the kernel sees it: a value everywhere but where it holds NaN."""
        return Structure.of(array != array, dtype)

    @staticmethod
    def to_host(array: Array, dtype: str) -> np.ndarray:
        """0 for a value, NaN for memory that nobody wrote."""
        return np.where(Structure.raw(array) != 0, np.nan, 0.0).astype(dtypes.numpy_dtype(dtype))

    @staticmethod
    def bring_back(array: np.ndarray, held: Array, dtype: str) -> None:
        """Writes 0 where a tensor held NaN and the kernel wrote; what else it holds stays as it is."""
        array[(array != array) & (Structure.raw(held) == 0)] = dtypes.numpy_dtype(dtype).type(0)
