"""Which event touched an element last. One number for a whole buffer as long as that is true of all its elements."""

from __future__ import annotations

from typing import Any

import numpy as np


class Layer:
    """An event number per grain, flat. ``cells`` is None while all have the number ``one``."""

    __slots__ = ("cells", "one", "size")

    def __init__(self, size: int, one: int = 0) -> None:
        self.size = size
        self.one = one
        self.cells: np.ndarray | None = None

    def spread(self) -> np.ndarray:
        """The numbers one by one."""
        if self.cells is None:
            self.cells = np.full(self.size, self.one, np.int32)
        return self.cells


class Cells:
    """The layers of one buffer, seen with one shape (views of a buffer share its layers).

    ``writer``: the last write, negative where it moved or computed undefined data. ``reads``: the last read by each
    local thread since the write. ``displaced``: earlier reads and atomic writes that a later one has pushed out of its
    layer without coming after them. ``twin``: another unordered write of the same value (both vector cores doing the
    same work). ``checked``: order matters; else only ``writer`` is kept. ``window``: the grains of a memory in which
    several buffers lie at addresses given by hand.
    """

    __slots__ = ("checked", "full", "memory", "name", "shape", "shared", "state", "window")

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
        self.window: slice | None = None

    def get(self, layer: Layer, key: Any, full: bool) -> Any:
        """The numbers of a layer at ``key``; one integer if there is but one."""
        if layer.cells is None:
            return layer.one
        if self.window is not None:
            return layer.cells[self.window].reshape(self.shape)[key]
        if not full:
            return layer.cells.reshape(self.shape)[key]
        low = int(layer.cells.min())
        if low == layer.cells.max():
            layer.one, layer.cells = low, None
            return low
        return layer.cells.reshape(self.shape)

    def put(self, layer: Layer, key: Any, full: bool, event: Any) -> None:
        """A number, or an array of them, into a layer at ``key``."""
        if self.window is not None:
            layer.spread()[self.window].reshape(self.shape)[key] = event
            return
        if full and isinstance(event, int):
            layer.one, layer.cells = event, None
            return
        if layer.cells is None and isinstance(event, int) and event == layer.one:
            return
        layer.spread().reshape(self.shape)[key] = event

    def view(self, name: str, shape: tuple[int, ...], window: slice | None = None) -> Cells:
        """The same memory, or a window of its grains, under another name and shape."""
        other = object.__new__(Cells)
        other.name, other.memory, other.checked, other.shared = name, self.memory, self.checked, self.shared
        other.state = self.state
        other.window = window if window is not None else self.window
        count = int(np.prod(shape, dtype=np.int64))
        size = self.state.writer.size if other.window is None else other.window.stop - other.window.start
        grain = size // count if count else 1
        other.shape = shape if grain == 1 else (*shape, grain)
        other.full = (slice(None),) * len(shape)
        return other


class State:
    """The layers themselves."""

    __slots__ = ("displaced", "ends", "passed_by", "read", "reads", "tainted", "twin", "writer")

    def __init__(self, size: int, first: int) -> None:
        self.writer = Layer(size, first)
        self.reads: dict[int, Layer] = {}
        self.displaced: Layer | None = None
        self.twin: Layer | None = None
        self.tainted = False
        self.ends = False
        """The last elements are behind the end of the caller's tensor."""
        self.read = False
        self.passed_by = False
        """A statement that writes some elements, by a condition or as far as a tensor goes, had none to write, or what
        is here was made of such a buffer: the gaps are meant."""
