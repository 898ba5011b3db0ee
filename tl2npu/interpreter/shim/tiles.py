"""Parts of tensors: values in, values out. ``al``, ``tle`` and ``tle.dsa`` share them."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from tl2npu.interpreter.shim.values import array_of, checked, fault, number, numbers, plain, slices, tensor_of


def extract_slice(ful: Any, offsets: Any, sizes: Any, strides: Any, **_: Any) -> Any:
    """The part of a tensor at offsets, with sizes and strides."""
    part = checked(slices(offsets, sizes, strides), tuple(ful.shape), "extract_slice")
    return tensor_of(array_of(ful)[part], ful.dtype)


def insert_slice(ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any, **_: Any) -> Any:
    """A tensor with a part replaced; the tensor itself stays as it is."""
    part = checked(slices(offsets, sizes, strides), tuple(ful.shape), "insert_slice")
    if tuple(sub.shape) != numbers(sizes):
        raise fault(f"insert_slice: a tensor of shape {list(sub.shape)} is not of sizes {list(numbers(sizes))}")
    result = array_of(ful).copy()
    result[part] = array_of(sub)
    return tensor_of(result, ful.dtype)


def get_element(src: Any, indice: Any, **_: Any) -> Any:
    """One element of a tensor, as a scalar."""
    place, array = numbers(indice), array_of(src)
    if len(place) != array.ndim or not all(0 <= i < extent for i, extent in zip(place, array.shape, strict=True)):
        raise fault(f"get_element: {list(place)} is not inside of a tensor of shape {list(array.shape)}")
    return tensor_of(np.asarray(array[place]), src.dtype)


def extract_tile(x: Any, index: Any, tile_shape: Any = None, *, shape: Any = None, **_: Any) -> Any:
    """One tile of the grid of tiles that a tensor is made of.

    ``index``: the coordinates of the tile, or its number in row-major order. ``shape`` is the name that some documents
    give ``tile_shape``.
    """
    sizes = numbers(tile_shape if tile_shape is not None else shape)
    return tensor_of(array_of(x)[_tile(x, index, sizes)], x.dtype)


def insert_tile(x: Any, tile: Any, index: Any, **_: Any) -> Any:
    """A tensor with one tile of its grid replaced."""
    result = array_of(x).copy()
    result[_tile(x, index, tuple(number(extent) for extent in tile.shape))] = array_of(tile)
    return tensor_of(result, x.dtype)


def _tile(x: Any, index: Any, sizes: tuple[int, ...]) -> tuple[slice, ...]:
    whole = tuple(number(extent) for extent in x.shape)
    if len(sizes) != len(whole) or any(extent % size for extent, size in zip(whole, sizes, strict=True)):
        raise fault(f"a tensor of shape {list(whole)} is not a grid of tiles of shape {list(sizes)}")
    counts = tuple(extent // size for extent, size in zip(whole, sizes, strict=True))
    index = plain(index)
    if isinstance(index, (tuple, list, tl.tuple)):
        place = numbers(index)
    else:
        linear = number(index)
        inside = 0 <= linear < int(np.prod(counts))
        place = tuple(int(i) for i in np.unravel_index(linear, counts)) if inside else (-1,) * len(counts)
    if len(place) != len(counts) or not all(0 <= i < count for i, count in zip(place, counts, strict=True)):
        raise fault(f"there is no tile {plain(index)} in a grid of {' x '.join(map(str, counts))} tiles")
    return tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, sizes, strict=True))
