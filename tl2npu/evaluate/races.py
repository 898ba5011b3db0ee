"""Lanes of one ``T.Parallel`` loop that read what others store: what such a kernel computes is left to the GPU.

Watching is slow, so it is done only for an old kernel whose values were not those of the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tl2npu.evaluate.values import Array, NotChecked, Tile

_NOBODY = np.iinfo(np.int64)


class Watch:
    """Who read and who stored each element since the loop began; lanes go by number.

    What a statement reads is read before it stores anything: ``x[i] = x[n - i]`` turns a tile.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """A loop begins."""
        self.first: dict[int, Any] = {}
        self.last: dict[int, Any] = {}
        self.writers: dict[int, Any] = {}
        self.pending: list[tuple[Tile, Any, Any]] = []

    def reads(self, tile: Tile, index: Sequence[Array], lanes: tuple[int, ...], mask: Array | None) -> None:
        """Lanes read elements; raises :class:`NotChecked` if others have stored one of them."""
        flat, number = _places(tile, index, lanes, mask)
        writer = self.writers.get(id(tile))
        if writer is not None and np.any((writer[flat] >= 0) & (writer[flat] != number)):
            raise NotChecked(f"lanes read elements of `{tile.name}` that others store")
        self.pending.append((tile, flat, number))

    def stores(self, tile: Tile, index: Sequence[Array], lanes: tuple[int, ...], mask: Array | None) -> None:
        """Lanes store elements; raises :class:`NotChecked` if others have read one of them."""
        flat, number = _places(tile, index, lanes, mask)
        first, last = self.first.get(id(tile)), self.last.get(id(tile))
        if first is not None and last is not None:
            read = last[flat] >= 0
            if np.any(read & ((first[flat] != number) | (last[flat] != number))):
                raise NotChecked(f"lanes store elements of `{tile.name}` that others read")
        self.writers.setdefault(id(tile), np.full(tile.data.size, -1))[flat] = number
        for read, places, numbers in self.pending:
            np.minimum.at(self.first.setdefault(id(read), np.full(read.data.size, _NOBODY.max)), places, numbers)
            np.maximum.at(self.last.setdefault(id(read), np.full(read.data.size, _NOBODY.min)), places, numbers)
        self.pending = []


def _places(tile: Tile, index: Sequence[Array], lanes: tuple[int, ...], mask: Array | None) -> tuple[Any, Any]:
    keep = np.broadcast_to(True if mask is None else mask, lanes)
    places = [np.broadcast_to(np.asarray(item, np.int64), lanes) for item in index]
    for item, size in zip(places, tile.shape, strict=True):
        keep = keep & (item >= 0) & (item < size)
    numbers = np.arange(keep.size).reshape(lanes)[keep]
    return np.ravel_multi_index(tuple(item[keep] for item in places), tile.shape), numbers
