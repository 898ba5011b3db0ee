"""The arithmetic of the element types, but what lies between a load and a store is computed in float32 at least.

A GPU rounds the product of two halves to a half before a float32 sum takes it (or not, where its compiler finds a
multiply-add). A kernel that keeps such values in float32 agrees with this arithmetic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.dialects.functions import OF_FLOATS
from tl2npu.simulator.arithmetic.precise import Array, Precise
from tl2npu.simulator.ir import dtypes


def wide(x: Array) -> Array:
    """A narrow float as float32, everything else as it is."""
    kind = getattr(x, "dtype", None)
    if kind is None or kind.itemsize >= 4 or not dtypes.is_float(kind.name):
        return x
    return np.asarray(x).astype(np.float32)[()]


def _widened(function: Callable[..., Any]) -> Any:
    return staticmethod(lambda *operands: function(*map(wide, operands)))


class Unrounded(Precise):
    """See the module."""

    name = "unrounded"

    add = _widened(operator.add)
    sub = _widened(operator.sub)
    mul = _widened(operator.mul)
    div = _widened(Precise.div)
    multiply_add = _widened(Precise.multiply_add)
    pow = _widened(Precise.pow)
    reciprocal = _widened(Precise.reciprocal)

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant, with all its digits."""
        return np.float32(value) if _is_narrow(dtype) else Precise.number(value, dtype)


for _name in OF_FLOATS:
    setattr(Unrounded, _name, _widened(getattr(Precise, _name)))


def _is_narrow(dtype: str) -> bool:
    return dtypes.is_float(dtype) and dtypes.numpy_dtype(dtype).itemsize < 4
