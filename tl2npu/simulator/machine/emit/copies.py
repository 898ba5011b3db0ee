"""Copies of which everything is known beforehand: an assignment between two views.

Most copies of a kernel move a tile whose extents are constants, between regions that are inside of their buffers
whatever the block index is. Where nobody watches, they need none of the operator's decisions at run time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Region
from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.interval import interval
from tl2npu.simulator.ir.stmt import Op
from tl2npu.simulator.machine.emit.windows import Windows, is_whole

_COPIES = {"copy", "tma_copy", "async_copy", "npuir.copy"}
_HINTS = {"coalesced_width", "disable_tma", "eviction_policy", "annotations", "loop_layout", "pad_value"}
"""Parameters that change nothing about a copy that is inside on both sides."""


@dataclass(frozen=True)
class PlainCopy:
    """Both regions, with constant extents that are equal but for axes of extent 1."""

    source: Region
    target: Region


class Copies(Windows):
    """The code of such copies."""

    def plain_copy(self, stmt: Op) -> PlainCopy | None:
        """The copy, if it is one that needs no decision; None for all others."""
        if stmt.name not in _COPIES:
            return None
        for name, value in stmt.args.items():
            if name not in ("src", "dst") and name not in _HINTS and value is not None and value is not False:
                return None
        source, target = stmt.args.get("src"), stmt.args.get("dst")
        if isinstance(source, Load) and isinstance(target, Region):
            source = _from(source, target)
        elif isinstance(target, Load) and isinstance(source, Region):
            target = _from(target, source)
        if not isinstance(source, Region) or not isinstance(target, Region):
            return None
        if source.buffer is target.buffer or not (self.contained(source) and self.contained(target)):
            return None
        if _proper(source) != _proper(target) or not _proper(source):
            return None
        if source.buffer.memory == "global" and target.buffer.memory == "l1" and not _all_of_tile(target):
            return None  # clears the tile, or does not
        if source.buffer.memory == "global" and target.buffer.memory == "ub" and self.is_late(target):
            return None  # fills the tile
        if source.dtype != target.dtype and not (dtypes.is_float(source.dtype) and dtypes.is_float(target.dtype)):
            return None
        memories = {source.buffer.memory, target.buffer.memory}
        if stmt.name == "copy" and source.dtype != target.dtype and memories in ({"global", "ub"}, {"global", "l1"}):
            return None  # converts nothing, and is refused
        if stmt.name == "npuir.copy" and source.dtype != target.dtype and not is_whole(target):
            return None  # makes the tile anew
        return PlainCopy(source, target)

    def is_late(self, value: Region | Load) -> bool:
        """Whether the number of rows is no constant of the program."""
        rows = value.extents[-2:-1] if isinstance(value, Region) else ()
        bounds = [interval(count, self.ranges) for count in rows if not isinstance(count, int)]
        return any(found is None or found[0] != found[1] for found in bounds)

    def put_copy(self, copy: PlainCopy) -> None:
        """The statement."""
        value = self.compact(copy.source)
        if copy.source.dtype != copy.target.dtype:
            value = f"A.cast({value}, {copy.target.dtype!r})"
        if self.lends(copy):
            tile, tensor = copy.target.buffer.number, copy.source.buffer.number
            self.copied[tile] += 1
            self.moved[tensor] += self.trips * math.prod(e for e in copy.source.extents if isinstance(e, int))
        if self.lends(copy) and copy.target.buffer.number in self.borrowed:
            self.put(f"{self.buffer(copy.target.buffer)} = {value}")
        else:
            target = self.compact(copy.target)
            self.put(f"{target if target.endswith(']') else target + '[...]'} = {value}")

    def put_seen_copy(self, copy: PlainCopy) -> None:
        """The statement where each access is to be seen."""
        value = self.seen(copy.source, "r")
        if copy.source.dtype != copy.target.dtype:
            value = f"A.cast({value}, {copy.target.dtype!r})"
        self.put(f"{self.seen(copy.target, 'w')}[...] = {value}")

    def seen(self, region: Region, kind: str) -> str:
        """A region by way of the access, without its axes of extent 1."""
        name, number = self.buffer(region.buffer), region.buffer.number
        if is_whole(region):
            code = f"X.whole({number}, {name}, {kind!r}, {self.site})"
        else:
            extents = self.tuple(region.extents)
            code = f"X.view({number}, {name}, {self.tuple(region.starts)}, {extents}, {kind!r}, {self.site})"
        if 1 in region.extents:
            code += f"[{', '.join('0' if e == 1 else ':' for e in region.extents)}]"
        return code

    def lends(self, copy: PlainCopy) -> bool:
        """True if the source, as it is, could stand for the tile: a part of a tensor that the launch does not write."""
        source, target = copy.source.buffer, copy.target.buffer
        whole = is_whole(copy.target) and 1 not in copy.target.extents
        lasting = source.memory == "global" and source.alias is None and source.number not in self.written
        return whole and lasting and source.dtype == target.dtype

    def compact(self, region: Region) -> str:
        """A region as a view without its axes of extent 1."""
        name = self.buffer(region.buffer)
        if is_whole(region) and 1 not in region.extents:
            return name
        return f"{name}[{self.slices(region)}]"


def _from(start: Load, other: Region) -> Region | None:
    """The region at a start index, of the extents of the other side, aligned to the trailing axes."""
    rank, extents = len(start.indices), list(other.extents)
    if len(extents) > rank:
        if any(not isinstance(e, int) or e != 1 for e in extents[: len(extents) - rank]):
            return None
        extents = extents[len(extents) - rank :]
    extents = [1] * (rank - len(extents)) + extents
    return Region(start.buffer, start.indices, tuple(extents), (True,) * rank)


def _proper(region: Region) -> list[object]:
    return [e for e in region.extents if e != 1]


def _all_of_tile(target: Region) -> bool:
    """True for a region that has the last two axes of its buffer whole."""
    sides = list(zip(target.extents, target.buffer.shape, strict=True))[-2:]
    return all(isinstance(e, int) and isinstance(s, int) and e == s for e, s in sides)
