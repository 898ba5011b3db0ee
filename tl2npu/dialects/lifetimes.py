"""From where to where the compiler's memory planning takes a tile to be alive.

A port of ``AscendMemoryPlanner`` (``src/transform/ascend_memory_planning.cc``, 95acbd7f: the visitors,
``LivenessAnalysis``, ``ReorderKillPoints``, ``FindEventIndex``), with what is odd about it: a tile that is touched
first outside of all loops and last in a loop lives to the end of the kernel, not of the loop; what the head of a loop
or of a branch reads counts for the end of it, but an end that falls on a loop or a branch counts from its begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Tile = int
"""A tile, by a number of the caller's choice."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """One instruction or scalar store, and the tiles that it touches.

    ``parts``: tiles of which it writes a part, each with the variables that say which.
    """

    touched: tuple[Tile, ...]
    reads: frozenset[Tile] = frozenset()
    writes: frozenset[Tile] = frozenset()
    parts: tuple[tuple[Tile, frozenset[str]], ...] = ()


@dataclass(frozen=True, eq=False)
class Glance:
    """A value that is bound to a name: its reads count for the loop or branch around it."""

    touched: tuple[Tile, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """A loop (``loops``) over ``variables``, or a branch; ``head``: what its bounds or its condition read.

    ``may_be_skipped``: a branch without an ``else``.
    """

    body: tuple[Step, ...]
    loops: bool
    head: tuple[Tile, ...] = ()
    variables: frozenset[str] = frozenset()
    may_be_skipped: bool = False


Step = Leaf | Glance | Block


@dataclass(eq=False)
class _Entry:
    """An entry of the linear sequence; begin and end of a block, and the copies of a statement in an unrolled loop that
    does not mention the loop variable, share ``place``, the number of the first of them."""

    place: int
    touched: list[Tile] = field(default_factory=list)


class _Sequence:
    """The linear sequence of a kernel."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.first: dict[Tile, int] = {}
        self.level: dict[int, int] = {}
        self._places: dict[int, int] = {}

    def add(self, steps: Iterable[Step], level: int, around: list[Tile]) -> None:
        """Append steps; ``around`` collects what the block around them reads itself."""
        for step in steps:
            if isinstance(step, Block):
                inner = level + step.loops
                begin = self._places.setdefault(id(step), len(self.entries))
                self.level[begin] = inner
                self.entries.append(_Entry(begin))
                head: list[Tile] = []
                self._touch(step.head, head)
                self.add(step.body, inner, head)
                self.entries.append(_Entry(begin, head))
            elif isinstance(step, Glance):
                self._touch(step.touched, around)
            elif step.touched:
                touched: list[Tile] = []
                self._touch(step.touched, touched)
                place = self._places.setdefault(id(step), len(self.entries))
                self.level[place] = level
                self.entries.append(_Entry(place, touched))

    def _touch(self, tiles: Iterable[Tile], into: list[Tile]) -> None:
        for tile in tiles:
            into.append(tile)
            self.first.setdefault(tile, len(self.entries))


def lifetimes(steps: Sequence[Step]) -> Mapping[Tile, tuple[int, int]]:
    """First and last place of every tile that gets one, both included; only their order means something.

    A tile that is first touched by the head of a block has no first place, and gets no memory.
    """
    sequence = _Sequence()
    rest: list[Tile] = []
    sequence.add([Block(tuple(steps), loops=False)], 0, rest)
    entries = sequence.entries
    born: dict[Tile, _Entry] = {}
    last: dict[Tile, int] = {}
    for number, entry in enumerate(entries):
        for tile in entry.touched:
            last[tile] = number
            if sequence.first[tile] == number:
                born[tile] = entry
    eventful = {entry.place for entry in born.values()} | {entries[number].place for number in last.values()}
    seen = [entry for entry in entries if entry.place in eventful]
    found: dict[Tile, tuple[int, int]] = {}
    for tile, entry in born.items():
        end = entries[last[tile]]
        level = sequence.level[entry.place]
        if sequence.level[end.place] > level:
            end = _outer_end(sequence, seen, end, level)
        found[tile] = (entry.place, end.place)
    return found


def _outer_end(sequence: _Sequence, seen: Sequence[_Entry], end: _Entry, level: int) -> _Entry:
    """The last entry before one that is a level further out than where the tile was born; of all, if there is none."""
    start = next(number for number, entry in enumerate(seen) if entry.place == end.place)
    for entry, following in zip(seen[start:], seen[start + 1 :], strict=False):
        if sequence.level[following.place] == level - 1:
            return entry
    return seen[-1]
