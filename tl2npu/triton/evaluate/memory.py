"""Pointers into tensors, what they load and store. The memory of a tensor is one axis of elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import NotChecked, Tile

Array = Any
"""A number or a NumPy array."""


@dataclass(frozen=True)
class Pointers:
    """Places in a tensor, in elements from its start. ``is_bool``: its bytes are truths; ``reached``: how many elements
    tensors would have to have for what was accessed, where they have less."""

    tensor: Tile
    offset: Array
    reached: dict[str, int]
    is_bool: bool = False

    def moved(self, by: Array) -> Pointers:
        """Pointers that lie ``by`` elements further on."""
        return replace(self, offset=self.offset + by)

    def load(self, mask: Array = None, other: Array = None) -> Array:
        """The elements; ``other``, or what is not defined, where ``mask`` is false."""
        places, chosen = self._places(mask)
        found = self.tensor.data.reshape(-1)[places]
        found = found != 0 if self.is_bool else found
        if np.all(chosen):
            return found
        rest = arithmetic.lost((), self.tensor.dtype) if other is None else other
        return np.where(chosen, found, np.asarray(rest).astype(found.dtype))

    def store(self, values: Array, mask: Array = None) -> None:
        """Store values, converted to the element type of the tensor, where ``mask`` is true."""
        places, chosen = self._places(mask)
        self.tensor.touch()
        shape = np.broadcast_shapes(places.shape, np.shape(values))
        places, chosen = (np.broadcast_to(item, shape)[...] for item in (places, chosen))
        found = np.broadcast_to(arithmetic.cast(values, self.tensor.dtype), shape)
        self.tensor.data.reshape(-1)[places[chosen]] = found[chosen]

    def add(self, values: Array, mask: Array = None) -> None:
        """Add to the elements, each as often as a pointer is there."""
        places, chosen = self._places(mask)
        self.tensor.touch()
        found = np.broadcast_to(arithmetic.cast(values, self.tensor.dtype), places.shape)
        np.add.at(self.tensor.data.reshape(-1), places[chosen], found[chosen])

    def _places(self, mask: Array) -> tuple[Array, Array]:
        """The places, 0 where ``mask`` is false or behind the end, and the mask."""
        places = np.asarray(self.offset)
        chosen = np.broadcast_to(True if mask is None else np.asarray(mask) != 0, places.shape)
        if mask is not None and np.ndim(mask) > places.ndim:
            raise NotChecked("a mask has more axes than its pointers")
        places = np.where(chosen, places, 0)
        name, size = self.tensor.name, self.tensor.data.size
        if places.size and np.min(places) < 0:
            raise NotChecked(f"it reads or writes in front of `{name}`")
        if not size:
            raise NotChecked(f"the tensor `{name}` is not in the new kernel")
        if places.size and (most := int(np.max(places))) >= size:
            self.reached[name] = max(self.reached.get(name, 0), most + 1)
            places, chosen = np.where(places < size, places, 0), chosen & (places < size)
        return places, chosen


@dataclass(frozen=True)
class Block:
    """``tl.make_block_ptr``: a block at ``offsets`` of a tensor at ``base``; ``described``: a tensor descriptor."""

    base: Pointers
    shape: tuple[Array, ...]
    strides: tuple[Array, ...]
    offsets: tuple[Array, ...]
    block: tuple[int, ...]
    described: bool = False

    def at(self, offsets: tuple[Array, ...]) -> Block:
        """The block at another place."""
        return Block(self.base, self.shape, self.strides, offsets, self.block, self.described)

    def pointers(self, boundary_check: tuple[int, ...]) -> tuple[Pointers, Array]:
        """The pointers to its elements, and which of them lie inside along the axes that are checked, all of those of a
        descriptor."""
        checked = range(len(self.block)) if self.described else boundary_check
        rank, places, inside = len(self.block), np.zeros(self.block, np.int64), np.ones(self.block, bool)
        for axis, (start, extent) in enumerate(zip(self.offsets, self.block, strict=True)):
            along = (start + np.arange(extent)).reshape([-1 if n == axis else 1 for n in range(rank)])
            places = places + along * self.strides[axis]
            if axis in checked:
                inside = inside & (along >= 0) & (along < self.shape[axis])
        return self.base.moved(places), inside
