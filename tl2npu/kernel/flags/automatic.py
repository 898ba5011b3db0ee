"""The flags that AUTO_SYNC inserts, which are not all that are needed.

It knows of each tile the last access only (``src/transform/ascend_sync_insert.cc``, ``UpdateLatestAccessHistory``): of
a tile that the vector unit writes and then reads, a store to global memory waits for nothing, as two reads need no
order. Nor does it look at when a flag was set that it takes to be on the way. Loops are looked at twice; what either
turn needs is inserted for all. In front of a branch and behind it, and where a tile's element is read, all pipes wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import side_of
from tl2npu.kernel.flags.pipes import Touch, pipe_of
from tl2npu.kernel.model import CUBE_MEMORY, Branch, Buffer, Copy, Kernel, Memory, Op, Side, Stmt, Sync, children, walk

Pair = tuple[str, str]
"""A pipe, and one that waits for it."""


@dataclass(eq=False)
class Latest:
    """The last access of a tile, and the flags since then."""

    pipe: str
    writes: bool
    behind: set[Pair] = field(default_factory=set)


class Automatic:
    """What is inserted in front of each statement, found turn by turn; a second run has it all from the start.

    ``barriers``: statements that the code generator writes with barriers of all pipes, by their id. ``authors``: the
    core of each barrier of the author, by its id.
    """

    def __init__(self, barriers: frozenset[int], authors: Mapping[int, Side]) -> None:
        self.barriers, self.authors = barriers, authors
        self.inserted: dict[tuple[Side, int], set[Pair]] = defaultdict(set)
        self.latest: dict[Side, dict[Buffer, Latest]] = defaultdict(dict)

    @property
    def count(self) -> int:
        """How many flags are inserted; the last run is the one that finds no more."""
        return sum(map(len, self.inserted.values()))

    def forget(self) -> None:
        """The next run begins."""
        self.latest.clear()

    def flags(self, side: Side, stmt: Stmt, touches: Iterable[Touch], parallel: bool) -> list[Pair]:
        """In front of a statement, in order."""
        latest, pipe = self.latest[side], pipe_on(side, stmt, parallel)
        now: dict[Buffer, Latest] = {}
        for touch in touches:
            one = now.setdefault(touch.buffer, Latest(pipe, False))
            one.writes |= touch.writes
        before = {b: latest[b] for b in now if b in latest}
        wanted = {b: (old.pipe, pipe) for b, old in before.items() if old.writes or now[b].writes}
        wanted = {buffer: pair for buffer, pair in wanted.items() if pair[0] != pair[1]}
        needed = {
            pair
            for buffer, pair in wanted.items()
            if not leads(before[buffer].behind | (set(wanted.values()) - {pair}), *pair)
        }
        for one in latest.values():
            one.behind |= needed
        latest.update(now)
        self.inserted[side, id(stmt)] |= needed
        return sorted(self.inserted[side, id(stmt)])


def waits_around(branch: Branch, side: Side, fixed: Collection[str]) -> bool:
    """Whether all pipes of a core wait in front of the arms of a branch and behind them: Python takes other arms
    beforehand, by names that are ``fixed``, and there is none on a core for which it has no statement.
    """
    inside = walk([*branch.then, *branch.orelse])
    return not branch.cond.sym.variables() <= set(fixed) and any(side_of(one) in (side, Side.BOTH) for one in inside)


def cores_of_barriers(kernel: Kernel) -> dict[int, Side]:
    """The core of each barrier of the author: that of the statement before it, as it names no tile."""
    found, core = {}, Side.NONE
    for stmt in kernel.walk():
        if isinstance(stmt, Sync):
            found[id(stmt)] = core
        elif not children(stmt):
            core = core_of(stmt) or core
    return found


def core_of(stmt: Stmt) -> Side | None:
    """The core to which AUTO_CV_COMBINE gives a statement, and the barriers behind it."""
    side = side_of(stmt)
    if isinstance(stmt, Copy) and side is Side.BOTH and stmt.src.buffer.memory is Memory.L0C:
        return Side.CUBE
    return side if side in (Side.CUBE, Side.VECTOR) else None


def on_side(side: Side, touches: Iterable[Touch]) -> Iterator[Touch]:
    """The accesses that a core makes itself: of a copy between them each makes one."""
    for touch in touches:
        memory = touch.buffer.memory
        if memory is Memory.GM or (memory in CUBE_MEMORY) == (side is Side.CUBE):
            yield touch


def pipe_on(side: Side, stmt: Stmt, parallel: bool) -> str:
    """The pipe of a statement on one of the cores; a copy between them goes through global memory."""
    if isinstance(stmt, Copy) and (stmt.src.buffer.memory in CUBE_MEMORY) != (stmt.dst.buffer.memory in CUBE_MEMORY):
        sends = (stmt.src.buffer.memory in CUBE_MEMORY) == (side is Side.CUBE)
        if Memory.GM not in (stmt.src.buffer.memory, stmt.dst.buffer.memory):
            return ("FIX" if side is Side.CUBE else "MTE3") if sends else "MTE2"
    return "M" if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM else pipe_of(stmt, parallel)


def leads(pairs: Collection[Pair], source: str, target: str) -> bool:
    """Whether flags lead from one pipe to another, in whatever order they were set."""
    seen, queue = {source}, [source]
    while queue:
        at = queue.pop()
        more = {dst for src, dst in pairs if src == at} - seen
        seen |= more
        queue += more
    return target in seen
