"""How the axes of a rectangle of a buffer lie in the lanes of a ``T.Parallel``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Index = tuple[Any, ...]


@dataclass(frozen=True)
class Layout:
    """``axes``: for each axis of the buffer its axis among the lanes, -1 for an axis that is indexed by one number.

    ``rank``: the number of axes of the lanes.
    """

    axes: tuple[int, ...]
    rank: int

    @property
    def kept(self) -> tuple[int, ...]:
        """The lane axes, in the buffer's order."""
        return tuple(a for a in self.axes if a >= 0)

    def selection(self) -> str:
        """What brings a rectangle without its indexed axes into the order and number of the lanes' axes, as code."""
        order, code = self.kept, ""
        if list(order) != sorted(order):
            code = f".transpose({tuple(int(n) for n in np.argsort(order))})"
        if len(order) != self.rank:
            code += f"[{', '.join(':' if n in order else 'None' for n in range(self.rank))}]"
        return code

    def lanes(self, rectangle: np.ndarray) -> np.ndarray:
        """A rectangle with all axes of the buffer as a view with the lanes' axes (1 where it does not vary)."""
        order = self.kept
        part = rectangle[tuple(slice(None) if a >= 0 else 0 for a in self.axes)]
        if list(order) != sorted(order):
            part = part.transpose(np.argsort(order))
        return part[tuple(slice(None) if n in order else None for n in range(self.rank))]

    def index(self, starts: Index, extents: Index) -> Index:
        """The same rectangle as index arrays that broadcast over the lanes."""
        result: list[Any] = []
        for axis, start, extent in zip(self.axes, starts, extents, strict=True):
            if axis < 0:
                result.append(start)
            else:
                shape = [1] * self.rank
                shape[axis] = extent
                result.append(np.arange(start, start + extent).reshape(shape))
        return tuple(result)
