"""The functions of ``triton.language`` on NumPy arrays, with the parameters that Triton gives them.

Source: triton-lang/triton 3.8, ``python/triton/language/core.py`` and ``standard.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tl2npu.dialects.triton.operators import ELEMENTWISE
from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import NotChecked
from tl2npu.triton.evaluate.memory import Array, Block, Pointers
from tl2npu.triton.read.values import DType


def truncated(left: Array, right: Array) -> Array:
    """The quotient of integers as C has it; Python's for two constants."""
    if type(left) is int and type(right) is int:
        return left // right
    found = np.floor_divide(np.abs(left), np.abs(right))
    return np.where((np.asarray(left) < 0) == (np.asarray(right) < 0), found, -found)[()]


def remainder(left: Array, right: Array) -> Array:
    """What :func:`truncated` leaves."""
    return left - truncated(left, right) * right


def converted(value: Array, dtype: object, fp_downcast_rounding: object = None, bitcast: bool = False) -> Array:
    """``x.to(dtype)``."""
    if not isinstance(dtype, DType) or bitcast:
        raise NotChecked("a conversion of bits")
    return arithmetic.cast(value, dtype.name)[()]


def _load(
    pointer: Pointers | Block,
    mask: Array = None,
    other: Array = None,
    boundary_check: tuple[int, ...] = (),
    padding_option: str = "",
    *_: object,
    **__: object,
) -> Array:
    if not isinstance(pointer, Block):
        return pointer.load(mask, other)
    places, inside = pointer.pointers(boundary_check)
    return places.load(inside, None if not pointer.described and padding_option == "" else 0)


def _store(
    pointer: Pointers | Block, value: Array, mask: Array = None, boundary_check: tuple[int, ...] = (), **_: object
) -> None:
    if not isinstance(pointer, Block):
        pointer.store(value, mask)
        return
    places, inside = pointer.pointers(boundary_check)
    places.store(value, inside)


def _atomic_add(pointer: Pointers, val: Array, mask: Array = None, *_: object, **__: object) -> None:
    pointer.add(val, mask)


def _make_block_ptr(base: Pointers, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Block:
    return Block(base, tuple(shape), tuple(strides), tuple(offsets), tuple(map(int, block_shape)))


def _make_tensor_descriptor(base: Pointers, shape: Any, strides: Any, block_shape: Any, **_: object) -> Block:
    return Block(base, tuple(shape), tuple(strides), (0,) * len(shape), tuple(map(int, block_shape)), described=True)


def _advance(base: Block, offsets: Any) -> Block:
    return base.at(tuple(start + by for start, by in zip(base.offsets, offsets, strict=True)))


def _dot(input: Array, other: Array, acc: Array = None, *_: object, **__: object) -> Array:
    if input.shape[-1] != other.shape[-2]:
        raise NotChecked("a product of matrices that do not fit")
    found = np.matmul(input.astype(np.float64), other.astype(np.float64))
    if input.dtype.kind != "f":
        found = found.astype(np.int32)
    return found if acc is None else acc + found


def _reduction(combine: Callable[..., Array]) -> Callable[..., Array]:
    def reduced(
        input: Array, axis: int | None = None, keep_dims: bool = False, dtype: object = None, **others: object
    ) -> Array:
        if any(others.values()):
            raise NotChecked("a reduction that gives places or minds NaN")
        return combine(input, axis=axis, keepdims=keep_dims)

    return reduced


def _shape(shape: Any, more: tuple[Any, ...] = ()) -> tuple[int, ...]:
    return tuple(int(size) for size in ((*shape,) if isinstance(shape, (tuple, list)) else (shape, *more)))


def _trans(input: Array, *dims: Any) -> Array:
    places = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if not places and np.ndim(input) != 2:
        raise NotChecked("a tile that is no matrix is transposed")
    return np.transpose(input, [int(place) for place in places] or None)


def _cdiv(x: Array, div: Array) -> Array:
    return truncated(x + div - 1, div)


def _held(value: Any, dtype: str) -> Any:
    """A number as a float type holds it: infinite where it is too large for that."""
    is_large = isinstance(value, float) and arithmetic.is_float(dtype) and abs(value) > arithmetic.closest(dtype, False)
    return math.copysign(math.inf, value) if is_large else value


_FLOAT32 = DType("float32")


def _swizzle2d(i: int, j: int, size_i: int, size_j: int, size_g: int) -> tuple[int, int]:
    """Down the columns of each group of ``size_g`` rows; the last group may have fewer."""
    group, place = divmod(i * size_j + j, size_g * size_j)
    column, row = divmod(place, min(size_g, size_i - group * size_g))
    return group * size_g + row, column


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "load": _load,
    "swizzle2d": _swizzle2d,
    "load_tensor_descriptor": lambda desc, offsets: _load(desc.at(tuple(offsets))),
    "store": _store,
    "store_tensor_descriptor": lambda desc, offsets, value: _store(desc.at(tuple(offsets)), value),
    "atomic_add": _atomic_add,
    "make_block_ptr": _make_block_ptr,
    "make_tensor_descriptor": _make_tensor_descriptor,
    "advance": _advance,
    "dot": _dot,
    "sum": _reduction(lambda x, **how: np.sum(x if x.dtype.kind == "f" else x.astype(np.int64), **how)),
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "arange": lambda start, end: np.arange(int(start), int(end)),
    "zeros": lambda shape, dtype=_FLOAT32: arithmetic.cast(np.zeros(_shape(shape)), dtype.name),
    "zeros_like": np.zeros_like,
    "full": lambda shape, value, dtype: arithmetic.cast(np.full(_shape(shape), _held(value, dtype.name)), dtype.name),
    "cast": lambda input, *args, **words: converted(input, *args, **words),
    "where": lambda condition, x, y: np.where(np.asarray(condition) != 0, x, y),
    "broadcast_to": lambda input, shape, *more: np.broadcast_to(input, _shape(shape, more)),
    "expand_dims": lambda input, axis: np.expand_dims(input, _shape(axis)),
    "reshape": lambda input, shape, *more, can_reorder=False: np.reshape(input, _shape(shape, more)),
    "trans": _trans,
    "permute": _trans,
    "cdiv": _cdiv,
    "fma": lambda x, y, z: x * y + z,
    "div_rn": lambda x, y: arithmetic.divided(x, y),
    "fdiv": lambda x, y, ieee_rounding=False: arithmetic.divided(x, y),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "llrint": lambda x: np.rint(x).astype(np.int64),
    "clamp": lambda x, min, max, propagate_nan=None: np.minimum(np.maximum(x, min), max),
}
FUNCTIONS = {
    **FUNCTIONS,
    **{
        name: function
        for name, op in ELEMENTWISE.items()
        if name not in FUNCTIONS and (function := arithmetic.function(op)) is not None
    },
}
"""By their last names."""
