"""The barriers of warp groups (``with T.ws(0):``): the text from top to bottom is an order in which a GPU may run them
as long as no group waits for what stands further down.

The pass that puts them into one order (TL198) counts by itself: this judges it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tl2npu.evaluate.values import NotChecked


@dataclass(eq=False)
class Barriers:
    """What ``T.alloc_barrier`` makes. ``counts``: for each, how many threads complete a phase."""

    name: str
    counts: list[int]
    arrived: dict[int, int] = field(default_factory=dict)

    def arrive(self, place: int, threads: int) -> None:
        """Threads come to a barrier."""
        self.arrived[place] = self.arrived.get(place, 0) + threads

    def wait(self, place: int, parity: int) -> None:
        """Raises NotChecked unless the phase of this parity is complete; that of parity 1 is for a new barrier."""
        if self.arrived.get(place, 0) // self.counts[place] % 2 == parity % 2:
            raise NotChecked(f"a warp group waits at `{self.name}` for what stands behind it")
