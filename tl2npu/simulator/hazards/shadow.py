"""Which event touched an element last. One number for a whole buffer as long as that is true of all its elements."""

from __future__ import annotations

from typing import Any

import numpy as np


class Layer:
    """An event number per element, flat. ``cells`` is None while all elements have the number ``one``."""

    __slots__ = ("cells", "one", "size")

    def __init__(self, size: int, one: int = 0) -> None:
        self.size = size
        self.one = one
        self.cells: np.ndarray | None = None

    def get(self, shape: tuple[int, ...], key: Any, full: bool) -> Any:
        """The numbers at ``key`` of the buffer seen with ``shape``; one integer if there is but one."""
        if self.cells is None:
            return self.one
        if not full:
            return self.cells.reshape(shape)[key]
        low = int(self.cells.min())
        if low == self.cells.max():
            self.one, self.cells = low, None
            return low
        return self.cells.reshape(shape)

    def put(self, shape: tuple[int, ...], key: Any, full: bool, event: Any) -> None:
        """A number, or an array of them, into the elements at ``key``."""
        if full and isinstance(event, int):
            self.one, self.cells = event, None
            return
        if self.cells is None:
            if isinstance(event, int) and event == self.one:
                return
            self.cells = np.full(self.size, self.one, np.int32)
        self.cells.reshape(shape)[key] = event


class Cells:
    """The layers of one buffer, seen with one shape (views of a buffer share its layers).

    ``writer``: the last write, negative where it moved or computed undefined data. ``reads``: the last read by each
    local thread since the write. ``displaced``: earlier reads and atomic writes that a later one has pushed out of its
    layer without coming after them. ``twin``: another unordered write of the same value (both vector cores doing the
    same work). ``checked``: order matters; else only ``writer`` is kept.
    """

    __slots__ = ("checked", "full", "memory", "name", "shape", "shared", "state")

    def __init__(
        self, name: str, memory: str, shape: tuple[int, ...], first: int, checked: bool, grain: int = 1
    ) -> None:
        self.name = name
        self.memory = memory
        self.shared = False
        self.checked = checked
        self.state = State(int(np.prod(shape, dtype=np.int64)) * grain, first)
        self.shape = shape if grain == 1 else (*shape, grain)
        self.full = (slice(None),) * len(shape)

    def view(self, name: str, shape: tuple[int, ...]) -> Cells:
        """The same memory under another name and shape (of the same number of grains)."""
        other = object.__new__(Cells)
        other.name, other.memory, other.checked, other.shared = name, self.memory, self.checked, self.shared
        other.state = self.state
        count = int(np.prod(shape, dtype=np.int64))
        grain = self.state.writer.size // count if count else 1
        other.shape = shape if grain == 1 else (*shape, grain)
        other.full = (slice(None),) * len(shape)
        return other


class State:
    """The layers themselves."""

    __slots__ = ("displaced", "reads", "tainted", "twin", "writer")

    def __init__(self, size: int, first: int) -> None:
        self.writer = Layer(size, first)
        self.reads: dict[int, Layer] = {}
        self.displaced: Layer | None = None
        self.twin: Layer | None = None
        self.tainted = False
