"""Arithmetics whose floats are no numbers to NumPy: arrays of two fields, on which it refuses to compute.

So no operation slips past their classes. The first field has the name of the element type.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.simulator.ir import dtypes

Array = Any


def opaque(x: Any) -> bool:
    """True for floats of such an arithmetic."""
    kind = getattr(x, "dtype", None)
    return kind is not None and kind.names is not None


class Opaque:
    """The methods are those of ``Precise``, which computes what has no such operand and names no type of floats."""

    name = ""
    word: type[np.unsignedinteger] = np.uint64
    """Both fields of an element."""

    def __init_subclass__(cls) -> None:
        for name in [name for name in vars(Precise) if not name.startswith("_") and name != "name"]:
            own = getattr(cls, name, None) or cls.otherwise(name)
            setattr(cls, name, staticmethod(_dispatched(own, getattr(Precise, name))))

    @staticmethod
    def otherwise(name: str) -> Callable[..., Any]:
        """A function that the class does not spell out. Raises TypeError for one that it has to."""
        raise TypeError(name)

    @classmethod
    def raw(cls, x: Array) -> Any:
        """The elements as words."""
        return np.asarray(x).view(cls.word)

    @classmethod
    def of(cls, raw: Any, kind: Any) -> Array:
        """Words as elements; ``kind`` names their type or is that of an array."""
        return np.asarray(raw, cls.word).view(cls.storage(kind) if isinstance(kind, str) else kind)

    @classmethod
    def storage(cls, dtype: str) -> np.dtype:
        """The NumPy type that a buffer of an element type is kept in."""
        return _storage(dtype, np.dtype(cls.word).itemsize // 2)

    @classmethod
    def literal(cls, value: Any, like: Array) -> Any:
        """A Python number in the type of an array."""
        return cls.number(value, cls.name_of(like))

    @classmethod
    def like(cls, value: Any, array: Array) -> Any:
        """A number (a Python number or one of this arithmetic) in the type of an array."""
        if getattr(value, "dtype", None) is None:
            return cls.literal(value, array)
        return value if value.dtype == array.dtype else cls.cast(value, cls.name_of(array))

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant of an element type."""
        raise NotImplementedError

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type."""
        raise NotImplementedError

    @staticmethod
    def factor(x: Array) -> Array:
        """Elements are what products are computed in."""
        return x

    @staticmethod
    def is_float(array: Array) -> bool:
        """True: others are asked of ``Precise``."""
        return True

    @staticmethod
    def name_of(array: Array) -> str:
        """The element type of an array."""
        return str(array.dtype.names[0])

    @classmethod
    def same_bits(cls, array: Array, dtype: str) -> Array:
        """The memory of integers as elements of another type. Floats have no bits: UnsupportedOperator."""
        if opaque(array) and dtype == cls.name_of(array):
            return array.reshape(-1)
        raise UnsupportedOperator(f"the bits of floats have no meaning in the {cls.name} mode")

    @classmethod
    def reinterpret(cls, x: Array, source: str, dtype: str) -> Array:
        """The bits of a value as another type. Raises UnsupportedOperator for floats: they have no bits."""
        if source != dtype:
            raise UnsupportedOperator(f"the bits of floats have no meaning in the {cls.name} mode")
        return x


def _dispatched(own: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*args: Any, **kwargs: Any) -> Any:
        concerned = any(map(_concerned, args)) or any(map(_concerned, kwargs.values()))
        return (own if concerned else plain)(*args, **kwargs)

    return computed


def _concerned(argument: Any) -> bool:
    return dtypes.is_float(argument) if isinstance(argument, str) else opaque(argument)


@functools.cache
def _storage(dtype: str, size: int) -> np.dtype:
    return np.dtype([(dtype, f"u{size}"), ("high", f"u{size}")]) if dtypes.is_float(dtype) else Precise.storage(dtype)
