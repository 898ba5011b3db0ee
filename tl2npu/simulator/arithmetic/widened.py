"""The arithmetic of the element types with every float a float64: what a kernel computes but for its roundings."""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.arithmetic.precise import Array, Precise
from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.simulator.ir import dtypes


class Widened(Precise):
    """Tensors of floats are given and come back as float64; integers are those of :class:`Precise`."""

    name = "widened"

    @staticmethod
    def storage(dtype: str) -> np.dtype:
        """float64 for every float."""
        return np.dtype(np.float64) if dtypes.is_float(dtype) else Precise.storage(dtype)

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant, with all its digits."""
        return np.float64(value) if dtypes.is_float(dtype) else Precise.number(value, dtype)

    @staticmethod
    def like(value: Any, array: np.ndarray) -> Any:
        """A number in the type of an array."""
        kind = getattr(value, "dtype", None)
        return Precise.literal(value, array) if kind is None else np.asarray(value).astype(array.dtype)[()]

    @staticmethod
    def name_of(array: np.ndarray) -> str:
        """float32 for every float: operators ask for it where they choose how to compute."""
        return "float32" if array.dtype == np.float64 else Precise.name_of(array)

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type; between floats nothing is lost."""
        return np.asarray(x).astype(np.float64)[()] if dtypes.is_float(dtype) else Precise.cast(x, dtype, mode)

    @staticmethod
    def convert(x: Array, dtype: str, mode: str) -> Array:
        """Ascend's vector cast. A mode that rounds a float to a float has no meaning here."""
        if not dtypes.is_float(dtype):
            return Precise.convert(x, dtype, mode)
        if mode not in ("none", "rint") and x.dtype == np.float64:
            raise UnsupportedOperator(f"a cast with mode {mode!r} between floats has no meaning in float64")
        return np.asarray(x).astype(np.float64)[()]

    @staticmethod
    def same_bits(array: np.ndarray, dtype: str) -> np.ndarray:
        """The memory of an array as another type: floats have other bits here."""
        if dtypes.is_float(dtype) or array.dtype == np.float64:
            if dtypes.is_float(dtype) and array.dtype == np.float64:
                return array.reshape(-1)
            raise UnsupportedOperator("the bits of floats have no meaning in float64")
        return Precise.same_bits(array, dtype)

    @staticmethod
    def reinterpret(x: Array, source: str, dtype: str) -> Array:
        """The bits of a value as another type: floats have other bits here."""
        if dtypes.is_float(source) or dtypes.is_float(dtype):
            raise UnsupportedOperator("the bits of floats have no meaning in float64")
        return Precise.reinterpret(x, source, dtype)

    @staticmethod
    def factor(x: np.ndarray) -> np.ndarray:
        """The numbers as they are."""
        return x

    @staticmethod
    def matmul(x: Array, y: Array, dtype: str) -> Array:
        """The product of two matrices, summed in float64."""
        return np.matmul(x, y) if dtypes.is_float(dtype) else Precise.matmul(x, y, dtype)

    @staticmethod
    def poison(dtype: str) -> Any:
        """NaN for every float."""
        return np.float64(np.nan) if dtypes.is_float(dtype) else Precise.poison(dtype)
