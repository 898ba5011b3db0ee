"""Copies of fewer elements than a tile has: what the tile held behind them is kept only where it can be seen.

A short copy leaves the rest of the memory as it was. If the rest never leaves the tile before the tile is written
again - element-wise results of it lie behind the end of the tensor that they are stored to - a plain copy does as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tl2npu.kernel.symbolic import Sym
from tl2npu.tile.expr import Call, Const, Load, axis, identity, loads
from tl2npu.tile.ir import Buffer, For, If, Kernel, Map, Move, Region, Stmt, reads, statements, with_bodies, writes
from tl2npu.triton.read.masks import conjuncts, positive

Ends = frozenset[tuple[int, Sym]]
"""Axes of a tile with the number of elements along each that mean something."""


def with_plain_copies(kernel: Kernel) -> Kernel:
    """The kernel with short copies as plain ones, in every body in which nothing behind them is seen."""
    done: set[str] = set()
    kept: set[int] = set()

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found = _Body(kernel, stmts).plain()
        if found is not None:
            stmts, names = found
            done.update(names)
            kept.update(map(id, stmts))
        return tuple(with_bodies(stmt, body) for stmt in stmts)

    new = body(kernel.body)
    if not done:
        return kernel

    def filled(stmt: Stmt) -> bool:
        """The tile is only read where it was written anew."""
        return isinstance(stmt, Map) and stmt.dst in done and isinstance(stmt.value, Const) and id(stmt) not in kept

    def without_fills(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(with_bodies(stmt, without_fills) for stmt in stmts if not filled(stmt))

    return replace(kernel, body=without_fills(new))


@dataclass
class _Body:
    """The statements of one body; ``ends``: tiles of which only the leading elements mean something now, ``ended``:
    that they did somewhere in the body."""

    kernel: Kernel
    stmts: tuple[Stmt, ...]
    buffers: dict[str, Buffer] = field(init=False)
    ends: dict[str, Ends] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.buffers = self.kernel.buffers

    def plain(self) -> tuple[tuple[Stmt, ...], set[str]] | None:
        """The statements with plain copies, and the tiles that are filled so; None if something may be seen."""
        merges: dict[int, Move] = {}
        for place, (first, second) in enumerate(zip(self.stmts, self.stmts[1:], strict=False)):
            if (found := self.merged(first, second)) is not None:
                merges[place + 1] = found[0]
        if not merges:
            return None
        for place, stmt in enumerate(self.stmts):
            if place in merges:
                found = self.merged(self.stmts[place - 1], stmt)
                assert found is not None
                self.short(merges[place].dst.buffer, found[1])
            elif not self.step(stmt):
                return None
        if self.elsewhere(merges):
            return None
        gone = {place - 1 for place in merges}
        new = tuple(merges.get(place, stmt) for place, stmt in enumerate(self.stmts) if place not in gone)
        return new, {move.dst.buffer for move in merges.values()}

    def short(self, name: str, ends: Ends) -> None:
        self.ends[name] = ends
        self.ended.add(name)

    def merged(self, first: Stmt, second: Stmt) -> tuple[Move, Ends] | None:
        """``tile = tensor's elements, behind its end what the tile held``: the plain copy, and where the end is."""
        if not isinstance(first, Move) or not isinstance(second, Map) or not isinstance(second.value, Call):
            return None
        value, shape = second.value, self.buffers[second.dst].shape
        new, old = (
            Load(name, identity(len(shape)), self.buffers[name].dtype) for name in (first.dst.buffer, second.dst)
        )
        if value.op != "select" or value.args[1:] != (new, old) or first.src.buffer not in self.tensors():
            return None
        if not self.whole(first.dst) or self.buffers[first.dst.buffer].shape != shape:
            return None
        if sum(first.dst.buffer in reads(stmt) for stmt in statements(self.kernel.body)) != 1:
            return None
        rooms = self.rooms(first.src)
        conditions = [positive(part) for part in conjuncts(value.args[0])]
        ends = {(n, room) for n, room in rooms.items() if any(c == room - axis(n) for c in conditions if c is not None)}
        if len(ends) != len(conditions):
            return None
        return replace(first, dst=Region(second.dst, first.dst.start, first.dst.extent)), frozenset(ends)

    def step(self, stmt: Stmt) -> bool:
        """Follow a statement; False if it may show what lies behind an end."""
        tainted = reads(stmt) & self.ends.keys()
        if isinstance(stmt, (For, If)):
            inner = [*statements((stmt,))]
            touched = {name for item in inner for name in (*reads(item), *writes(item))}
            return not touched & self.ends.keys()
        written = writes(stmt)
        if tainted:
            if isinstance(stmt, Map):
                shape = self.buffers[stmt.dst].shape
                same = all(
                    item.index == identity(len(shape)) and self.buffers[item.buffer].shape == shape
                    for item in loads(stmt.value)
                    if item.buffer in tainted
                )
                ends = frozenset().union(*(self.ends[name] for name in tainted))
                if same:
                    self.short(stmt.dst, ends)
                return same
            if isinstance(stmt, Move) and self.whole(stmt.src):
                if stmt.dst.buffer in self.tensors():
                    return self.ends[stmt.src.buffer] <= set(self.rooms(stmt.dst).items())
                if self.whole(stmt.dst):
                    self.short(stmt.dst.buffer, self.ends[stmt.src.buffer])
                    return True
            return False
        whole = isinstance(stmt, Map) or (isinstance(stmt, Move) and self.whole(stmt.dst))
        for name in written & self.ends.keys():
            if not whole:
                return False
            del self.ends[name]
        return True

    def elsewhere(self, merges: dict[int, Move]) -> bool:
        """True if a tile with an end is read before it is written in this body, or anywhere else."""
        ended = self.ended
        inside = {id(stmt) for stmt in statements(self.stmts)}
        if any(reads(stmt) & ended for stmt in statements(self.kernel.body) if id(stmt) not in inside):
            return True
        fresh: set[str] = set()
        for place, stmt in enumerate(self.stmts):
            needed = set() if place in merges else reads(stmt)
            if isinstance(stmt, (For, If)):
                needed = {name for item in statements((stmt,)) for name in reads(item)}
            if needed & ended - fresh:
                return True
            if isinstance(stmt, Map) or (isinstance(stmt, Move) and self.whole(stmt.dst)):
                fresh |= writes(stmt)
        return False

    def tensors(self) -> set[str]:
        return {param.name for param in self.kernel.params}

    def whole(self, region: Region) -> bool:
        """True if a region is all of a tile."""
        if region.buffer in self.tensors():
            return False
        return all(start.is_zero for start in region.start) and region.extent == self.buffers[region.buffer].shape

    def rooms(self, region: Region) -> dict[int, Sym]:
        """By axis of the tile that lies there: how many of its elements are inside of the tensor."""
        shape = self.buffers[region.buffer].shape
        pairs = [
            extent - start
            for extent, start, size in zip(shape, region.start, region.extent, strict=True)
            if size is not None
        ]
        return dict(enumerate(pairs))
