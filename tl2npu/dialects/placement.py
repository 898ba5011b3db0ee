"""Where the compiler's memory planning puts tiles, and whether there is a place for all of them.

A port of ``LinearScanAllocator`` (``src/transform/ascend_memory_planning.cc``, 95acbd7f). Tiles come in the order of
their first use; those with the same first use come in any order, it differs from run to run. Each takes new memory
while there is some, then the first free block that is large enough; free blocks are merged, the last one grows to the
end of the memory. So memory is lost to fragments, and a kernel may be accepted in one run and not in the next.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 32
_STATES = 4096
_ORDERS = 20_000
"""So many states of the memory at a time, and orders of ties in all, are followed; more may or may not fit."""


_SHOWN = 64
"""In so many orders of ties it is looked which tiles share bytes."""


class Fit(enum.Enum):
    """Whether the tiles of a memory fit: in every order of ties, in some or perhaps none, in none."""

    CERTAIN = "fits for certain"
    DOUBTFUL = "may not fit"
    NEVER = "does not fit"


@dataclass(frozen=True)
class Interval:
    """Where a tile of ``size`` bytes is alive, in places of the linear sequence, both ends included."""

    name: str
    start: int
    end: int
    size: int


@dataclass(frozen=True)
class Placement:
    """What becomes of the tiles of a memory.

    ``peak``: bytes that are alive at the same time at most. ``failed``: a tile that finds no place in some order, and
    ``free`` the bytes that no living tile has then.
    """

    fit: Fit
    peak: int
    failed: Interval | None = None
    free: int = 0


_Blocks = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Memory:
    """``top``: where new memory begins; ``free``: blocks (offset, size), merged; ``taken``: (end, offset, size)."""

    limit: int
    top: int = 0
    free: _Blocks = ()
    taken: tuple[tuple[int, int, int], ...] = ()

    def at(self, start: int) -> _Memory:
        """The memory when tiles that end before ``start`` have been freed."""
        over = [(offset, size) for end, offset, size in self.taken if end < start]
        left = tuple(item for item in self.taken if item[0] >= start)
        return _Memory(self.limit, self.top, _merged([*self.free, *over]), left)

    def with_tile(self, tile: Interval) -> _Memory | None:
        """The memory with one more tile; None if there is no place for it."""
        if self.top + tile.size <= self.limit:
            return self._taking(tile, self.top, self.top + tile.size, self.free)
        top, free = self.top, self.free
        found = next((block for block in free if block[1] >= tile.size), None)
        if found is None:
            if not free or sum(free[-1]) != top or self.limit - free[-1][0] < tile.size:
                return None
            found = (free[-1][0], self.limit - free[-1][0])
            top, free = self.limit, (*free[:-1], found)
        left = [block for block in free if block != found]
        if found[1] > tile.size:
            left.append((found[0] + tile.size, found[1] - tile.size))
        return self._taking(tile, found[0], top, _merged(left))

    def _taking(self, tile: Interval, offset: int, top: int, free: _Blocks) -> _Memory:
        taken = tuple(sorted([*self.taken, (tile.end, offset, tile.size)]))
        return _Memory(self.limit, top, free, taken)

    @property
    def unused(self) -> int:
        """Bytes that no living tile has."""
        return self.limit - sum(size for _, _, size in self.taken)


def _merged(blocks: Sequence[tuple[int, int]]) -> _Blocks:
    found: list[tuple[int, int]] = []
    for offset, size in sorted(blocks):
        if found and sum(found[-1]) >= offset:
            found[-1] = (found[-1][0], max(sum(found[-1]), offset + size) - found[-1][0])
        else:
            found.append((offset, size))
    return tuple(found)


def aligned(size: int) -> int:
    """Bytes rounded up to whole blocks of 32."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def place(intervals: Sequence[Interval], limit: int) -> Placement:
    """Whether all tiles find a place in a memory of ``limit`` bytes, for every order of ties that there may be."""
    peak = max((sum(o.size for o in intervals if o.start <= i.start <= o.end) for i in intervals), default=0)
    if sum(interval.size for interval in intervals) <= limit:
        return Placement(Fit.CERTAIN, peak)
    states = {_Memory(limit)}
    orders = 0
    failed: tuple[Interval, int] | None = None
    ordered = sorted(intervals, key=lambda interval: interval.start)
    for start, group in itertools.groupby(ordered, key=lambda interval: interval.start):
        tiles = list(group)
        after: set[_Memory] = set()
        for state in states:
            for end, tile in _all_orders(state.at(start), tiles):
                orders += 1
                if orders > _ORDERS:
                    return Placement(Fit.DOUBTFUL, peak, *(failed or ()))
                if tile is None:
                    after.add(end)
                else:
                    failed = failed or (tile, end.unused)
        if not after or len(after) > _STATES:
            return Placement(Fit.DOUBTFUL if after else Fit.NEVER, peak, *(failed or ()))
        states = after
    return Placement(Fit.CERTAIN if failed is None else Fit.DOUBTFUL, peak, *(failed or ()))


def shared(intervals: Sequence[Interval], limit: int) -> Iterator[Mapping[tuple[str, str], bool]]:
    """The pairs of tiles with bytes in common, for each order of ties in which all have a place; the first of many.

    True for a pair of the same address and size.
    """
    if sum(interval.size for interval in intervals) <= limit:
        yield {}
        return
    ordered = sorted(intervals, key=lambda interval: interval.start)
    groups = [list(group) for _, group in itertools.groupby(ordered, key=lambda interval: interval.start)]
    orders = itertools.product(*(itertools.permutations(group) for group in groups))
    path: list[tuple[Interval, int, _Memory]] = []
    for order in itertools.islice(orders, _SHOWN):
        tiles = list(itertools.chain(*order))
        known = next((n for n, (tile, step) in enumerate(zip(tiles, path, strict=False)) if tile is not step[0]), None)
        del path[len(path) if known is None else known :]
        for tile in tiles[len(path) :]:
            before = (path[-1][2] if path else _Memory(limit)).at(tile.start)
            after = before.with_tile(tile)
            if after is None:
                break
            (taken,) = set(after.taken) - set(before.taken)
            path.append((tile, taken[1], after))
        else:
            pairs = itertools.combinations([(tile, offset) for tile, offset, _ in path], 2)
            yield {
                pair: (at, one.size) == (there, other.size)
                for (one, at), (other, there) in pairs
                if at < there + other.size and there < at + one.size
                for pair in ((one.name, other.name), (other.name, one.name))
            }


def _all_orders(memory: _Memory, tiles: Sequence[Interval]) -> Iterator[tuple[_Memory, Interval | None]]:
    """The memory behind the tiles, for each of their orders, with the tile that found no place if there is one."""
    if not tiles:
        yield memory, None
        return
    tried: set[tuple[int, int]] = set()
    for number, tile in enumerate(tiles):
        if (tile.end, tile.size) in tried:
            continue
        tried.add((tile.end, tile.size))
        after = memory.with_tile(tile)
        if after is None:
            yield memory, tile
        else:
            yield from _all_orders(after, [*tiles[:number], *tiles[number + 1 :]])
