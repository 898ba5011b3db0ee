"""Elements of tiles, for one place or for all lanes of ``T.Parallel`` loops at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import Array, Fault, NotChecked, Tile, whole_number

Shape = tuple[int, ...]
COMBINED: Mapping[str, np.ufunc] = {"+": np.add, "max": np.maximum, "min": np.minimum}
"""What atomics do."""
_BEHIND = "an element outside of `{}` is stored"


def load(tile: Tile, index: Sequence[Array], zeros: bool) -> Array:
    """The elements at an index; lanes read 0 (``zeros``) behind the ends of a tile, or what nobody has stored."""
    if len(index) != len(tile.shape):
        raise Fault(f"`{tile.name}` has {len(tile.shape)} axes and {len(index)} indices")
    if tile.lanes:
        place = tuple(whole_number(item, tile.name) for item in index)
        if place in tile.lanes:
            return tile.lanes[place]
    if all(isinstance(item, int) for item in index):
        inside = all(0 <= item < size for item, size in zip(index, tile.shape, strict=True))
        if inside:
            return tile.data[tuple(index)]
        if tile.in_global and not zeros:
            raise Fault(f"an element outside of `{tile.name}` is read")
        tile.left = True
        return _outside(tile, zeros)[()]
    slices = _window(tile.data.shape, index)
    if slices is not None:
        return tile.data[slices].copy()
    whole = [_integers(tile, item) for item in index]
    bad: Any = None
    places = []
    for item, size in zip(whole, tile.shape, strict=True):
        if item.size and (item.min() < 0 or item.max() >= size):
            out = (item < 0) | (item >= size)
            bad = out if bad is None else bad | out
            item = np.clip(item, 0, max(size - 1, 0))
        places.append(item)
    if bad is not None and 0 in tile.shape:
        raise NotChecked(f"`{tile.name}` is empty")
    values = tile.data[tuple(places)]
    return values if bad is None else np.where(bad, _outside(tile, zeros), values)


def _window(shape: Shape, index: Sequence[Array]) -> tuple[slice, ...] | None:
    """The slices that an index stands for: an axis of lanes for each axis of a tile, in order and without gaps.

    The slice of an axis that lanes do not go along has one element.
    """
    rank, found = len(shape), []
    for axis, item in enumerate(index):
        if isinstance(item, int):
            low, count = item, 1
        elif item.ndim == rank and item.shape[axis] == item.size and item.dtype == np.int64:
            count = item.size
            low = int(item.flat[0]) if count else 0
            if count > 1 and not np.array_equal(item.reshape(-1), _arange(low, count)):
                return None
        else:
            return None
        if low < 0 or low + count > shape[axis]:
            return None
        found.append(slice(low, low + count))
    return tuple(found)


@lru_cache(maxsize=4096)
def _arange(low: int, count: int) -> np.ndarray[Any, Any]:
    return np.arange(low, low + count)


def _outside(tile: Tile, zeros: bool) -> Any:
    return np.zeros((), tile.data.dtype) if zeros else arithmetic.lost((), tile.dtype)


def _integers(tile: Tile, item: Array) -> np.ndarray[Any, Any]:
    found = np.asarray(item)
    if found.dtype.kind == "f":
        if not np.all(np.isfinite(found)) or np.any(found != np.floor(found)):
            raise NotChecked(f"an index of `{tile.name}` is not a whole number")
        found = found.astype(np.int64)
    return found


def store(
    tile: Tile,
    index: Sequence[Array],
    value: Array,
    lanes: Shape,
    mask: Array | None,
    how: str = "",
    drops: bool = True,
) -> None:
    """Store the values of all lanes that ``mask`` takes; ``how``: ``+``, ``max``, ``min`` for atomics.

    What lies outside of the tile is dropped, as GPU TileLang guards it, or is a fault. Raises :class:`NotChecked`
    where lanes store different values in one place.
    """
    if len(index) != len(tile.shape):
        raise Fault(f"`{tile.name}` has {len(tile.shape)} axes and {len(index)} indices")
    tile.touch()
    plain = all(isinstance(item, (int, np.integer)) for item in index)
    if plain and tile.local and not how and math.prod(lanes) > 1:
        place = tuple(int(item) for item in index)
        found = arithmetic.cast(value, tile.dtype)
        before = tile.lanes.get(place, tile.data[place])
        tile.lanes[place] = found if mask is None else np.where(mask, found, before)
        return
    if plain and not (lanes and how):
        if mask is not None and not np.any(mask):
            return
        if np.ndim(value):
            values = np.unique(np.broadcast_to(value, lanes)[np.broadcast_to(True if mask is None else mask, lanes)])
            if len(values) != 1:
                raise NotChecked(f"lanes store different values in one element of `{tile.name}`")
            value = values[0]
        if all(0 <= item < size for item, size in zip(index, tile.shape, strict=True)):
            place = tuple(int(item) for item in index)
            tile.data[place] = arithmetic.cast(COMBINED[how](tile.data[place], value) if how else value, tile.dtype)
            tile.lanes.pop(place, None)
        elif not drops:
            raise Fault(_BEHIND.format(tile.name))
        return
    slices = _window(tile.data.shape, index) if mask is None and not how else None
    if slices is not None and tile.data[slices].shape == lanes:
        tile.data[slices] = arithmetic.cast(value, tile.dtype)
        return
    _scatter(tile, [_integers(tile, item) for item in index], value, lanes, mask, how, drops)


def _scatter(
    tile: Tile, index: list[np.ndarray[Any, Any]], value: Array, lanes: Shape, mask: Array | None, how: str, drops: bool
) -> None:
    keep: Any = None if mask is None else np.broadcast_to(mask, lanes)
    if tile.in_global and any(item.size and item.min() < 0 for item in index):
        early = np.broadcast_to(np.any(np.stack([np.broadcast_to(item < 0, lanes) for item in index]), axis=0), lanes)
        if np.any(early if keep is None else early & keep):
            raise NotChecked(f"`{tile.name}` is stored before its beginning")
    for item, size in zip(index, tile.shape, strict=True):
        if item.size and (item.min() < 0 or item.max() >= size):
            inside = (item >= 0) & (item < size)
            if not drops and np.any(~inside if keep is None else keep & ~inside):
                raise Fault(_BEHIND.format(tile.name))
            keep = np.broadcast_to(inside, lanes) if keep is None else keep & inside
    places = [np.broadcast_to(item, lanes) for item in index]
    values = np.broadcast_to(arithmetic.cast(value, tile.dtype), lanes)
    if keep is not None:
        places, values = [item[keep] for item in places], values[keep]
    flat = np.ravel_multi_index(tuple(places), tile.shape).reshape(-1) if places else np.zeros(1, np.int64)
    values, target = values.reshape(-1), tile.data.reshape(-1)
    if how:
        if _distinct(flat, target.size):
            target[flat] = COMBINED[how](target[flat], values)
        else:
            COMBINED[how].at(target, flat, values)
    else:
        target[flat] = values
        if len(flat) > 1 and not _same(target[flat], values):
            raise NotChecked(f"lanes store different values in one element of `{tile.name}`")
    if not np.shares_memory(target, tile.data):
        tile.data[...] = target.reshape(tile.shape)


def _same(left: Any, right: Any) -> bool:
    return bool(np.all((left == right) | ((left != left) & (right != right))))


def several(tile: Tile, index: Sequence[Array], lanes: Shape, mask: Array | None) -> bool:
    """Whether several lanes have the same element."""
    slices = _window(tile.data.shape, index)
    if not lanes or (slices is not None and tile.data[slices].shape == lanes):
        return False
    keep = np.broadcast_to(True if mask is None else mask, lanes)
    places = [np.broadcast_to(_integers(tile, item), lanes) for item in index]
    for item, size in zip(places, tile.shape, strict=True):
        keep = keep & (item >= 0) & (item < size)
    if not places or not np.any(keep):
        return False
    flat = np.ravel_multi_index(tuple(item[keep] for item in places), tile.shape)
    return not _distinct(flat, tile.data.size)


def _distinct(flat: Any, size: int) -> bool:
    seen = np.zeros(size, np.bool_)
    seen[flat] = True
    return int(np.count_nonzero(seen)) == int(flat.size)
