"""What a call reads of its inputs: a load wholly outside of one, while parts of it are never read, is a wrong
index. Such a load alone is none: the last tile of a grid that is rounded up may begin behind the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.hazards.hazard import OUT_OF_BOUNDS, WARNING, Hazard, Party


class Inputs:
    """Of one call: by number of the buffer, what was read along each axis, and the first load that lies outside."""

    def __init__(self) -> None:
        self.read: dict[int, list[np.ndarray]] = {}
        self.behind: dict[int, Party] = {}

    def reach(self, number: int, array: np.ndarray, key: Any) -> None:
        """Elements are read: an index or a slice for each axis, None for all."""
        axes = self.read.get(number)
        if axes is None:
            axes = self.read[number] = [np.zeros(size, bool) for size in array.shape]
        if key is None or len(axes) != array.ndim:
            key = (slice(None),) * len(axes)
        for axis, part in zip(axes, key, strict=False):
            axis[part] = True

    def faults(self, names: dict[int, str]) -> list[Hazard]:
        """The loads that missed their tensor."""
        found = []
        for number, party in self.behind.items():
            axes = self.read.get(number, [np.zeros(1, bool)])
            rest = [(n, np.flatnonzero(~axis)[0]) for n, axis in enumerate(axes) if not axis.all()]
            if not rest:
                continue
            some = all(axis.any() for axis in axes)
            what = f"no load reaches element {rest[0][1]} of axis {rest[0][0]}" if some else "nothing reads it"
            message = f"out-of-bounds access: {party} lies wholly outside of {names[number]}, and {what}"
            found.append(Hazard(OUT_OF_BOUNDS, message, "GM", names[number], None, party, WARNING))
        return found
