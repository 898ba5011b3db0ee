"""Copies of the tensors of a launch that lie far apart.

An allocator puts tensors side by side, so that a pointer that runs past the end of its tensor reaches another one, and
nothing shows it. Between copies with wide gaps it reaches memory that no tensor has.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from tl2npu.interpreter.memory import bytes_at

GAP = 1 << 26
_ALIGNMENT = 4096


class Apart:
    """Copies of ``storages`` (address and bytes of each) with ``GAP`` bytes between them.

    The memory between them is reserved and never touched. Raises ValueError where two storages overlap.
    """

    def __init__(self, storages: list[tuple[int, int]]) -> None:
        order = sorted(storages)
        if any(address + size > after for (address, size), (after, _) in pairwise(order)):
            raise ValueError("storages overlap: copies of them would not share memory")
        steps = [-(-size // _ALIGNMENT) * _ALIGNMENT + GAP for _, size in order]
        arena = np.empty(GAP + _ALIGNMENT + sum(steps), np.uint8)
        at = GAP - arena.ctypes.data % _ALIGNMENT
        self._copies: dict[int, np.ndarray] = {}
        for (address, size), step in zip(order, steps, strict=True):
            self._copies[address] = arena[at : at + size]
            self._copies[address][...] = bytes_at(address, size)
            at += step

    def of(self, value: Any) -> Any:
        """The same argument of a launch with its tensors in the copies; other values are returned as they are."""
        if type(value) in (tuple, list):
            return type(value)(self.of(item) for item in value)
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            return replace(value, base=self.of(value.base))
        if hasattr(value, "untyped_storage"):
            copy = self._copies.get(value.untyped_storage().data_ptr())
            if copy is None:  # it has no elements
                return value
            storage = torch.from_numpy(copy).untyped_storage()
            return torch.empty(0, dtype=value.dtype).set_(storage, value.storage_offset(), value.shape, value.stride())
        if hasattr(value, "data_ptr") and hasattr(value, "base"):  # reinterpreted: TensorWrapper
            return type(value)(self.of(value.base), value.dtype)
        return value

    def put_back(self) -> None:
        """Write the copies to where they were taken from."""
        for address, copy in self._copies.items():
            bytes_at(address, copy.size)[...] = copy
