"""Which tiles hold a value that is still wanted, taken in the order of the text.

The order of the text is the order of execution for a compiler that splits the work between the cores by itself. A tile
may stand for another one if neither is written while the other one's value is still wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import (
    Branch,
    Buffer,
    Copy,
    Kernel,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Scalar,
    Stmt,
    Store,
    children,
)
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import Sym, opaque

Tiles = set[Buffer]


@dataclass(eq=False)
class Step:
    """One step of execution: what it reads, writes, and overwrites without reading."""

    stmt: Stmt
    reads: Tiles = field(default_factory=set)
    writes: Tiles = field(default_factory=set)
    fresh: Tiles = field(default_factory=set)
    after: list[Step] = field(default_factory=list)
    live: Tiles = field(default_factory=set)
    """Tiles that are wanted behind the step."""
    inner: Sequence[Stmt] = ()
    """The statements of a loop that is taken as one step."""

    @property
    def wanted(self) -> Tiles:
        """Tiles that are wanted in front of the step."""
        return (self.live - self.fresh) | self.reads


class Liveness:
    """The tiles of a kernel and where their values are wanted.

    ``strict``: a tile is only overwritten by what surely writes each element. A load from global memory leaves what
    lies beyond the end of its tensor, which is of no use where two tiles are to be one, but may be there for a reader;
    and to memory planning a loop over rows only writes a part in each turn (TL721).
    """

    def __init__(self, kernel: Kernel, *, strict: bool = False) -> None:
        self.steps: list[Step] = []
        self._strict = strict
        self._bounds = Bounds({})
        start = self._step(Stmt(kernel.node))
        self._run(kernel.body, [start])
        self._spread()
        self.unwritten = start.live
        """Tiles that are read before anything is written to them."""

    def conflicts(self, one: Buffer, other: Buffer, gone: Sequence[Stmt] = ()) -> bool:
        """One of them is written while the value of the other is wanted; a copy between the two does no harm.

        ``gone``: statements that will not be there.
        """
        for step in self.steps:
            if _copies(step.stmt, one, other) or step.stmt in gone:
                continue
            if written_while_wanted(step, one, other) or written_while_wanted(step, other, one):
                return True
        return False

    # the steps in their order ----------------------------------------------------------------------------------------

    def _step(self, stmt: Stmt, before: Sequence[Step] = ()) -> Step:
        step = Step(stmt)
        self.steps.append(step)
        for one in before:
            one.after.append(step)
        return step

    def _run(self, body: Sequence[Stmt], before: list[Step]) -> list[Step]:
        for stmt in body:
            before = self._one(stmt, before)
        return before

    def _one(self, stmt: Stmt, before: list[Step]) -> list[Step]:
        if isinstance(stmt, Branch):
            step = self._leaf(stmt, before)
            return [*self._run(stmt.then, [step]), *self._run(stmt.orelse, [step])]
        if isinstance(stmt, Loop):
            return self._loop(stmt, before)
        inner = children(stmt)
        if inner:
            return self._run([item for part in inner for item in part], before)
        return [self._leaf(stmt, before)]

    def _leaf(self, stmt: Stmt, before: list[Step]) -> Step:
        step = self._step(stmt, before)
        for access in accesses(stmt):
            tile = access.operand.buffer
            if tile.memory is Memory.GM:
                continue
            if access.reads:
                step.reads.add(tile)
            if access.writes:
                step.writes.add(tile)
            whole = access.operand.is_whole and not access.element and (not self._strict or _writes_all(stmt))
            if access.writes and not access.reads and whole:
                step.fresh.add(tile)
        return step

    def _loop(self, loop: Loop, before: list[Step]) -> list[Step]:
        swept = self._swept(loop)
        if swept is not None:
            step = self._step(loop, before)
            step.reads, step.writes, step.fresh = swept
            step.inner = loop.body
            return [step]
        begun = self._begun(loop, before)
        head = self._leaf(loop, begun)
        last = self._run(loop.body, [head])
        for step in last:
            step.after.append(head)
        runs = bool(loop.ranges) and self._surely_run(loop.ranges)
        return last if runs and loop.kind != "while" and last != [head] else [head]

    def _begun(self, loop: Loop, before: list[Step]) -> list[Step]:
        """Sums that begin anew in the first run of the loop: nothing of their old value is wanted there."""
        begun = {
            arg.buffer
            for stmt in loop.body
            if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM
            for name, arg in stmt.operands
            if name == "C" and _starts_with(stmt, loop)
        }
        if not begun:
            return before
        step = self._step(loop, before)
        step.fresh = begun
        return [step]

    def _surely_run(self, ranges: Sequence[Range]) -> bool:
        """A loop over these ranges has at least one turn."""
        return all(self._bounds.is_not_negative(item.extent - 1) for item in ranges)

    def _swept(self, loop: Loop) -> tuple[Tiles, Tiles, Tiles] | None:
        """A loop over whole tiles, element by element or row by row, as one step."""
        if loop.kind not in ("parallel", "serial", "unroll") or (self._strict and loop.kind != "parallel"):
            return None
        reads: Tiles = set()
        writes: Tiles = set()
        swept: dict[Buffer, list[Sym]] = {}
        for stmt in loop.body:
            if not isinstance(stmt, Store) and not (isinstance(stmt, Op) and (not self._strict or _writes_all(stmt))):
                return None
            touched = [access for access in accesses(stmt) if access.operand.buffer.memory is not Memory.GM]
            for access in touched:
                if access.reads and swept.get(access.operand.buffer) != _place(access.operand):
                    reads.add(access.operand.buffer)
            for access in touched:
                if access.writes:
                    writes.add(access.operand.buffer)
                    if not access.reads and self._covers(loop, access.operand):
                        swept[access.operand.buffer] = _place(access.operand)
        return reads, writes, set(swept)

    def _covers(self, loop: Loop, operand: Operand) -> bool:
        """One index after the other is a loop variable over the whole extent, or takes the whole extent at once.

        The other loop variables must have a turn.
        """
        dims, shape = operand.dims, operand.buffer.shape
        if dims is None:
            return self._surely_run(loop.ranges)
        if len(dims) != len(shape):
            return False
        sweeping: list[Range] = []
        for dim, size in zip(dims, shape, strict=True):
            whole = dim.covers(size)
            over = [item for item in loop.ranges if dim.lo == item.var and item.start.is_zero and item.extent == size]
            if not (whole or (over and dim.is_point)):
                return False
            sweeping += over
        return self._surely_run([item for item in loop.ranges if item not in sweeping])

    def _spread(self) -> None:
        changed = True
        while changed:
            changed = False
            for step in reversed(self.steps):
                live = set().union(*(one.wanted for one in step.after))
                if live != step.live:
                    step.live = live
                    changed = True


def written_while_wanted(step: Step, written: Buffer, wanted: Buffer) -> bool:
    """One tile is written in a step while the other one's value is wanted.

    In a loop that is one step, each iteration reads and writes elements of its own if all accesses name the same one;
    else what one iteration reads, another one may have written before.
    """
    if written not in step.writes or not step.inner:
        return written in step.writes and wanted in step.live
    found = [[a for a in accesses(stmt) if a.operand.buffer in (written, wanted)] for stmt in step.inner]
    apart = _is_apart(step.stmt, [access.operand for part in found for access in part])
    is_wanted = wanted in step.live
    for part in reversed(found if apart else [*found, *found]):
        if is_wanted and any(access.writes and access.operand.buffer is written for access in part):
            return True
        mine = [access for access in part if access.operand.buffer is wanted]
        if apart and any(access.writes for access in mine):
            is_wanted = False
        is_wanted = is_wanted or any(access.reads for access in mine)
    return False


def _is_apart(stmt: Stmt, operands: Sequence[Operand]) -> bool:
    """No two iterations of a loop touch the same element of these tiles, and each touches the same one of all."""
    places = {tuple(map(str, _place(operand))) for operand in operands}
    variables = {str(item.var) for item in stmt.ranges} if isinstance(stmt, Loop) else set()
    return len(places) == 1 and variables.issubset(*places)


def _writes_all(stmt: Stmt) -> bool:
    """No element of the destination keeps its value, whatever the sizes of the tensors are."""
    if isinstance(stmt, Copy):
        within = stmt.src.buffer.memory is not Memory.GM and stmt.src.is_whole and not stmt.options
        return within and stmt.src.buffer.shape == stmt.dst.buffer.shape
    return isinstance(stmt, Op) and (bool(stmt.op.meaning) or stmt.op.kind in (Kind.FILL, Kind.REDUCE, Kind.GEMM))


def _copies(stmt: Stmt, one: Buffer, other: Buffer) -> bool:
    """All of one of them goes to all of the other."""
    between = isinstance(stmt, Copy) and {stmt.src.buffer, stmt.dst.buffer} == {one, other}
    return isinstance(stmt, Copy) and between and stmt.src.is_whole and stmt.dst.is_whole


def _starts_with(gemm: Op, loop: Loop) -> bool:
    """``init`` is true in the first run of the loop."""
    init = gemm.args.get("init", gemm.args.get("initC"))
    if not isinstance(init, Scalar) or len(loop.ranges) != 1:
        return False
    (item,) = loop.ranges
    return init.sym == opaque("Equal", item.var, item.start)


def _place(operand: Operand) -> list[Sym]:
    return [dim.lo for dim in operand.dims or ()]
