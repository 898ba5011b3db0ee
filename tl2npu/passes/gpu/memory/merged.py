"""TL137: two tiles of one shape and type are one where a value passes from one to the other and is then done with.

A GPU keeps a value in registers and in shared memory, and a step of a computation leaves its operand as it was; on an
NPU all are tiles in UB, and a person computes in place. Tiles that authors named stay apart, unless one is a copy of
another. What the compiler makes of a statement that writes its own operand was read: parts have tiles of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tl2npu.dialects.ascend.in_place import WRONG_IN_PLACE
from tl2npu.kernel.access import accesses, writes
from tl2npu.kernel.memory import inferred
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.memory.roles import uses
from tl2npu.kernel.model import (
    Access,
    Alloc,
    Buffer,
    Copy,
    Dim,
    Kernel,
    Loop,
    Memory,
    Op,
    Operand,
    Stmt,
    Store,
    children,
)
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import NUMBER
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def copies(job: Job) -> bool:
    """Of a GPU kernel: the source of a copy stands for the tile that it fills. True if there was one.

    A product passes to the vector cores, and what they made to the cube core, by such a copy: those stay.
    """
    tiles = _Tiles(job.kernel)
    found = uses(job.kernel)
    for copy in job.kernel.walk():
        if not isinstance(copy, Copy) or copy.via or not {copy.src.buffer, copy.dst.buffer} <= found.keys():
            continue
        source, target = found[copy.src.buffer], found[copy.dst.buffer]
        handed = target.operand and not (target.vector or (source.operand and tiles.is_made_once(copy.src.buffer)))
        if not (source.product or target.product or (handed and source.vector)):
            tiles.join(copy.src.buffer, copy.dst.buffer)
    return tiles.write(job)


def steps(job: Job, authors: frozenset[str]) -> None:
    """Of what is written for an NPU: tiles that passes made. ``authors``: the names that they found."""
    tiles = _Tiles(job.kernel, lambda buffer: buffer.name not in authors)
    for one, other in list(tiles.flows()):
        tiles.join(one, other)
    for one, other in list(tiles.landings()):
        tiles.join(one, other)
    for first, again in list(tiles.repeated()):
        tiles.join(first.dst.buffer, again.dst.buffer, (first, again))
    tiles.write(job)


class _Tiles:
    """The tiles of a kernel in groups that can be one."""

    def __init__(self, kernel: Kernel, is_made: Callable[[Buffer], bool] | None = None) -> None:
        self._kernel = kernel
        self._is_made = is_made
        self._live = Liveness(kernel)
        self._uses = inferred.uses(kernel)
        self._stmts = list(kernel.walk())
        self._groups: dict[Buffer, list[Buffer]] = {}
        self._gone: list[Copy] = []
        self._begin = {s.buffer: n for n, s in enumerate(self._stmts) if isinstance(s, Alloc)}
        self._places: dict[Buffer, list[tuple[int, Access]]] = {}
        for number, stmt in enumerate(self._stmts):
            for access in accesses(stmt):
                self._places.setdefault(access.operand.buffer, []).append((number, access))

    def flows(self) -> Iterator[tuple[Buffer, Buffer]]:
        """Pairs of tiles of which one is read where the other is written, in text order."""
        for stmt in self._stmts:
            touched = list(accesses(stmt))
            for target in (access.operand.buffer for access in touched if access.writes):
                for source in (access.operand.buffer for access in touched if access.reads):
                    if source is not target:
                        yield source, target

    def landings(self) -> Iterator[tuple[Buffer, Buffer]]:
        """Pairs of tiles between a tile and tensors of another type: what is loaded for it, and what a pass stores."""
        copies = [stmt for stmt in self._stmts if isinstance(stmt, Copy)]
        loaded = {copy.dst.buffer for copy in copies if copy.src.buffer.memory is Memory.GM}
        stored = {copy.src.buffer for copy in copies if copy.dst.buffer.memory is Memory.GM}
        stored = {tile for tile in stored if self._is_made is not None and self._is_made(tile)}
        for first, last in itertools.product(copies, copies):
            one, other = first.src.buffer, last.dst.buffer
            if first.dst.buffer is last.src.buffer and one in loaded - stored and other in stored - loaded:
                yield one, other

    def is_made_once(self, tile: Buffer) -> bool:
        """One statement makes all that is in a tile, which then is handed over to the cube core as one."""
        return len({number for number, access in self._places.get(tile, []) if access.writes}) == 1

    def repeated(self) -> Iterator[tuple[Copy, Copy]]:
        """Pairs of loads of the same data in one block, with nothing between that changes it or what was loaded."""
        for body in (self._kernel.body, *(inner for stmt in self._stmts for inner in children(stmt))):
            for number, again in enumerate(body):
                if isinstance(again, Copy) and _loads(again):
                    first = next((s for s in reversed(body[:number]) if self._ends(s, again)), None)
                    if isinstance(first, Copy) and _same_load(first, again):
                        yield first, again

    def _ends(self, stmt: Stmt, load: Copy) -> bool:
        """Whether a statement before a load is the same one, or changes what is loaded."""
        if isinstance(stmt, Copy) and _same_load(stmt, load):
            changed = {a.operand.buffer for s in self._between(stmt, load) for a in accesses(s) if a.writes}
            return stmt.dst.buffer not in changed
        return any(o.buffer is load.src.buffer for o in writes(stmt, deep=True))

    def _between(self, first: Stmt, last: Stmt) -> list[Stmt]:
        return self._stmts[self._stmts.index(first) + 1 : self._stmts.index(last)]

    def join(self, one: Buffer, other: Buffer, loads: tuple[Copy, Copy] | None = None) -> bool:
        """Make one tile of two, and of all that they stand for, if nothing speaks against it.

        ``loads``: the load of the first one, and the only statement that writes the other one, with the same data.
        """
        left, right = self._group(one), self._group(other)
        if left is right or not self._may_go(left, right):
            return False
        again = None if loads is None else loads[1]
        if loads is not None and again is not None:
            between = self._between(*loads)
            if any(access.writes and access.operand.buffer in left for stmt in between for access in accesses(stmt)):
                return False  # what the first load brought is no longer there
            written = [n for n, access in self._places[other] if access.writes]
            if len(right) > 1 or len(written) != 1 or not self._is_made or not self._is_made(other):
                return False
            self._gone.append(again)
        if not all(self._agree(a, b) for a in left for b in right) or self._are_tensors([*left, *right]):
            self._gone = [copy for copy in self._gone if copy is not again]
            return False
        left += right
        for buffer in right:
            self._groups[buffer] = left
        return True

    def write(self, job: Job) -> bool:
        """Carry it out: names, and copies of a tile to itself."""
        edits = Edits(job.file.index)
        renamed: dict[str, str] = {}
        gone: set[int] = set()
        for group in {id(group): group for group in self._groups.values() if len(group) > 1}.values():
            first = min(self._places[tile][0][0] for tile in group)
            kept = min((tile for tile in group if self._is_there(tile, first)), key=self._rank, default=None)
            if kept is None:
                continue
            best = min(group, key=self._rank)  # the author's, though allocated further inside
            named = best.name if self._rank(best)[0] < self._rank(kept)[0] else kept.name
            for buffer in group:
                renamed[buffer.name] = named
                if buffer is not kept and buffer.statement is not None:
                    edits.remove(buffer.statement)
                    gone |= {id(name) for name in names_in(buffer.statement)}
                    shown = f"`{named}` serves for `{buffer.name if buffer.name != named else kept.name}`"
                    job.change("TL137", buffer.statement, shown)
        if not renamed:
            return False
        for stmt in self._stmts:
            one = isinstance(stmt, Copy) and stmt.src.buffer is not stmt.dst.buffer and self._is_one(stmt.src, stmt.dst)
            if one or stmt in self._gone:
                leave = edits.remove if stmt.node in job.original else edits.move  # with the reason above it
                leave(stmt.node)
                gone |= {id(name) for name in names_in(stmt.node)}
        for name in names_in(job.located.node):
            if renamed.get(name.value, name.value) != name.value and id(name) not in gone:
                edits.replace(name, name.with_changes(value=renamed[name.value]))
        job.apply(edits)
        return True

    def _rank(self, tile: Buffer) -> tuple[int, ...]:
        """The author's name stays, that which stands most often; of tiles of passes the one that is used first."""
        if self._is_made is not None and self._is_made(tile):
            return 1, self._places[tile][0][0]
        return 0, -len(self._places[tile]), self._begin[tile]

    def _is_one(self, source: Operand, target: Operand) -> bool:
        return self._group(source.buffer) is self._group(target.buffer)

    def _group(self, buffer: Buffer) -> list[Buffer]:
        return self._groups.setdefault(buffer, [buffer])

    def _may_go(self, left: list[Buffer], right: list[Buffer]) -> bool:
        return self._is_made is None or all(map(self._is_made, left)) or all(map(self._is_made, right))

    def _agree(self, one: Buffer, other: Buffer) -> bool:
        """Whether two tiles can be one."""
        same = one.shape == other.shape and one.dtype == other.dtype and one.outside == other.outside
        if not same or not all(tile.is_tile and tile.statement is not None for tile in (one, other)):
            return False
        if self._is_made is not None and not all(inferred.is_vector(self._uses, tile) for tile in (one, other)):
            return False
        if not self._are_there(one, other):
            return False
        if {one, other} & self._live.unwritten or self._live.conflicts(one, other, self._gone):
            return False
        if not all(self._in_place(stmt, one, other) for stmt in self._stmts):
            return False
        return self._passes(one, other) and self._passes(other, one)

    def _are_tensors(self, group: list[Buffer]) -> bool:
        """One is loaded, another one is stored, and both are named after their tensors."""
        if self._is_made is None or not all(map(self._is_made, group)):
            return False
        if len({NUMBER.sub("", tile.name) for tile in group}) == 1:
            return False  # both are the same tile in the type of a tensor
        copies = [s for s in self._stmts if isinstance(s, Copy)]
        loaded = any(s.src.buffer.memory is Memory.GM and s.dst.buffer in group for s in copies)
        return loaded and any(s.dst.buffer.memory is Memory.GM and s.src.buffer in group for s in copies)

    def _are_there(self, one: Buffer, other: Buffer) -> bool:
        """One of them is allocated in the body of the launch before either is used."""
        used = [n for tile in (one, other) for n, _ in self._places.get(tile, [])]
        return bool(used) and any(self._is_there(tile, min(used)) for tile in (one, other))

    def _is_there(self, tile: Buffer, number: int) -> bool:
        begin = self._begin.get(tile)
        return begin is not None and begin < number and self._stmts[begin] in self._kernel.body

    def _passes(self, tile: Buffer, other: Buffer) -> bool:
        """A tile that the cores exchange keeps its first reader in the text, and is handed over once, in the end."""
        there = self._places.get(other, [])
        ours = self._places.get(tile, [])
        lands = any(_copies(self._stmts[n], Memory.L0C, Memory.UB) and access.writes for n, access in ours)
        first = next((n for n, access in ours if access.reads), None)
        early = [(n, access) for n, access in there if first is None or n <= first]
        if lands and any(access.reads or not self._at_once(n, tile, other) for n, access in early):
            return False
        handed = next((n for n, access in ours if _copies(self._stmts[n], Memory.UB, Memory.L1)), None)
        return handed is None or all(n < handed for n, _ in there)

    def _at_once(self, number: int, tile: Buffer, other: Buffer) -> bool:
        """The statement makes one of two tiles from the other, and is no copy, which would go."""
        stmt = self._stmts[number]
        return not isinstance(stmt, Copy) and {tile, other} <= {access.operand.buffer for access in accesses(stmt)}

    def _in_place(self, stmt: Stmt, one: Buffer, other: Buffer) -> bool:
        """A statement may write one of two tiles where it reads the other one; of stores liveness knows."""
        found = [access for access in accesses(stmt) if access.operand.buffer in (one, other)]
        if len({access.operand.buffer for access in found}) < 2:
            return True
        if len({access.operand.buffer for access in found if access.reads}) > 1:
            return False
        if isinstance(stmt, Copy):
            return stmt.src.is_whole and stmt.dst.is_whole and not stmt.options and not self._parts_loops(stmt)
        whole = all(access.operand.is_whole and not access.element for access in found)
        return isinstance(stmt, Store) or (isinstance(stmt, Op) and whole and _by_element(stmt))

    def _parts_loops(self, copy: Copy) -> bool:
        """Without the copy a loop would hold a loop over a vector and nothing else, which goes wrong (TL888)."""
        for loop in self._stmts:
            if isinstance(loop, Loop) and copy in loop.body:
                rest = [stmt for stmt in loop.body if stmt is not copy]
                return len(rest) == 1 and isinstance(rest[0], Loop) and len(rest[0].ranges) == 1
        return False


def _by_element(op: Op) -> bool:
    return (bool(op.op.meaning) or op.op.name == "tile.select") and op.op.name not in WRONG_IN_PLACE


def _loads(copy: Copy) -> bool:
    """All of a vector tile, from global memory."""
    vector = (copy.src.buffer.memory, copy.dst.buffer.memory) == (Memory.GM, Memory.UB)
    return vector and copy.dst.is_whole and not copy.options and not copy.src.loads


def _same_load(one: Copy, other: Copy) -> bool:
    """The same elements of a tensor go to the same place of a tile."""
    if not _loads(one) or one.src.buffer is not other.src.buffer or one.dst.buffer.shape != other.dst.buffer.shape:
        return False
    places = [
        [(dim.lo, size if dim.extent is None else dim.extent, dim.extent is None) for dim, size in _sized(copy.src)]
        for copy in (one, other)
    ]
    return places[0] == places[1]


def _sized(operand: Operand) -> Iterator[tuple[Dim, Sym]]:
    return zip(operand.dims or (), operand.buffer.shape, strict=False)


def _copies(stmt: Stmt, source: Memory, target: Memory) -> bool:
    return isinstance(stmt, Copy) and stmt.src.buffer.memory is source and stmt.dst.buffer.memory is target
