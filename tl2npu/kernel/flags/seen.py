"""Accesses that a run of the pipes has seen, and what it finds wrong with them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tl2npu.kernel.flags.pipes import Part, Touch
from tl2npu.kernel.model import Side, Stmt, Sync
from tl2npu.kernel.symbolic import Sym, const


@dataclass(frozen=True, eq=False)
class Conflict:
    """``second`` comes after ``first`` in the text that runs, and nothing orders them."""

    first: Seen
    second: Seen

    @property
    def is_read(self) -> bool:
        """A read that may come before its write; otherwise something is overwritten too early."""
        return not self.second.touch.writes


@dataclass(frozen=True, eq=False)
class Stuck:
    """A core that waits for a flag between cores which nothing sets; or one that was set and is left (``is_set``)."""

    stmt: Sync
    side: Side
    flag: Hashable
    is_set: bool


@dataclass(frozen=True, eq=False)
class Seen:
    """An access that was made: by which core, when on the clock of its thread, in which arms of unknown conditions."""

    stmt: Stmt
    side: Side
    touch: Touch
    part: Part
    thread: int
    time: int
    arms: frozenset[tuple[int, bool, Hashable]]

    def meets(self, other: Seen) -> bool:
        """The two certainly share an element, and may both run."""
        if any((branch, not arm, turn) in other.arms for branch, arm, turn in self.arms):
            return False
        if self.part is None or other.part is None:
            return True
        if len(self.part) != len(other.part):
            return False
        return all(_overlap(mine, theirs) for mine, theirs in zip(self.part, other.part, strict=True))

    def covers(self, other: Seen) -> bool:
        """All that the other one touches."""
        return self.part is None or (self.part == other.part and all(extent is not None for _, extent in self.part))


def _overlap(left: tuple[Sym, Sym | None], right: tuple[Sym, Sym | None]) -> bool:
    (lo, extent), (other_lo, other_extent) = left, right
    gap = (other_lo - lo).constant
    if gap is None:
        return False
    size = (extent if gap > 0 else other_extent) or const(1)
    known = size.constant
    return gap == 0 or (known is not None and known > abs(gap))
