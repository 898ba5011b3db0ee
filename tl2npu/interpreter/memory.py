"""The memory that a launch may touch: the storages of its tensors and its buffers on the chip.

Triton's interpreter reads and writes whatever address a pointer has, as a GPU does. Outside of every tensor that is
memory of the Python process: a load would give accidental numbers, a store would break the process. Such elements are
found here; loads of them give NaN (integers 0), and stores leave them out.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np


def bytes_at(address: int, size: int) -> np.ndarray:
    """The memory at an address, as bytes; writes to the array are writes to the memory."""
    if size == 0:
        return np.zeros(0, np.uint8)
    memory: np.ndarray = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    return memory


@dataclass
class Memory:
    """``ranges``: first address and end of each allocation. ``open``: addresses made of integers are used, as in a
    kernel that is given a tensor of pointers, so that it may reach memory that no argument has.

    ``beyond``: what loads from outside of all memory give, for floats and for integers; ``strayed``: there was one.

    ``narrowed``: element types to which the block that runs has rounded wider floats; ``rounded`` those of them that it
    multiplied afterwards.
    """

    ranges: list[tuple[int, int]] = field(default_factory=list)
    open: bool = False
    beyond: tuple[float, int] = (float("nan"), 0)
    strayed: bool = False
    narrowed: set[str] = field(default_factory=set)
    rounded: set[str] = field(default_factory=set)

    def add(self, address: int, size: int) -> None:
        """Allow an allocation of ``size`` bytes."""
        self.ranges.append((address, address + size))

    def outside(self, addresses: np.ndarray, size: int, wanted: np.ndarray) -> np.ndarray | None:
        """Where ``wanted`` elements of ``size`` bytes lie outside of every allocation, None if nowhere."""
        if self.open or not addresses.size:
            return None
        low, high = int(addresses.min()), int(addresses.max()) + size
        if any(first <= low and high <= end for first, end in self.ranges):
            return None
        inside = np.zeros(addresses.shape, bool)
        for first, end in self.ranges:
            inside |= (addresses >= first) & (addresses <= max(end - size, 0)) & (end - first >= size)
        result: np.ndarray = ~inside & wanted
        return result if result.any() else None
