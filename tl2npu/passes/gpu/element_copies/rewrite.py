"""TL166 to TL171: element loops that move data become copies, and global operands are loaded before they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import (
    Alloc,
    Buffer,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Stmt,
    Store,
    in_parallel,
    walk,
    walk_with_parents,
)
from tl2npu.kernel.regions import axis_of, extent_text, summand
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.element_copies.calls import plain_copies
from tl2npu.passes.gpu.element_copies.loops import LoopWork
from tl2npu.passes.gpu.element_copies.operands import LoopOperands
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import parse, shape_text
from tl2npu.passes.writing.tiles import dtype_text, size_text
from tl2npu.source.edits import Edits


def to_copies(job: Job) -> None:
    """``T.Parallel`` loops between global memory and tiles; global operands inside arithmetic are loaded first."""
    plain_copies(job)
    _through_tiles(job)

    def step() -> bool:
        found = _next(job)
        if found is not None and not LoopWork(job, *found).carry_out():
            text = "this loop accesses global memory in a pattern that no copy has"
            raise Blocked("TL170", found[0].node, text)
        return found is not None

    until_settled(job, step)


def _next(job: Job) -> tuple[Loop, tuple[Stmt, ...]] | None:
    """The first outermost ``T.Parallel`` with an operand in global memory that is no atomic's."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Loop) or stmt.kind != "parallel":
            continue
        if in_parallel(parents):
            continue
        if touches_global(stmt):
            return stmt, parents
    return None


def touches_global(loop: Loop) -> bool:
    """True if an element of a tensor is read or written in the loop; atomic additions are another pass's."""
    for stmt in walk([loop]):
        if isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
            continue
        if any(operand.buffer.memory is Memory.GM for operand in (*reads(stmt), *writes(stmt))):
            return True
    return False


# TL167: every second element of a row, ``x[2 * j]`` and ``x[2 * j + 1]``: the whole row goes through a tile.
#
# A copy has no step. A tile of all elements between the first and the last is loaded before the loop, or stored behind
# it if the loop writes each of them; what is picked of it is picked on the chip.

_MATRIX = 2
_MOST = 8
"""With a longer step, most of what is copied would be of no use."""


@dataclass(eq=False)
class _Span:
    """Elements at ``base + step * column + offset``, in rows over ``rows``; ``starts``: of the axes before the last."""

    buffer: Buffer
    starts: tuple[tuple[str, Range | None], ...]
    base: str
    step: int
    column: Range
    found: list[tuple[Operand, int]] = field(default_factory=list)

    @property
    def ranges(self) -> list[Range]:
        """What a tile of the span is indexed by."""
        return [*(item for _, item in self.starts if item is not None), self.column]

    @property
    def width(self) -> str:
        """Its elements in a row."""
        return f"{self.step} * {summand(extent_text(self.column))}"

    def region(self) -> str:
        """The part of the tensor."""
        parts = [start if item is None else _slice(start, extent_text(item)) for start, item in self.starts]
        return f"{self.buffer.name}[{', '.join([*parts, _slice(self.base, self.width)])}]"


def _slice(start: str, extent: str) -> str:
    return f"0:{extent}" if start == "0" else f"{start} : {summand(start)} + {extent}"


def _through_tiles(job: Job) -> None:
    """Do that in every outermost ``T.Parallel``."""
    for loop, parents in list(walk_with_parents(job.kernel.body)):
        if isinstance(loop, Loop) and loop.kind == "parallel" and not in_parallel(parents):
            spans = [span for span in _spans(LoopOperands(job, loop, parents)) if _is_moved(loop, span)]
            if spans:
                _rewrite(job, loop, parents, spans)
                _through_tiles(job)
                return


def _spans(work: LoopOperands) -> Iterator[_Span]:
    found: dict[tuple[object, ...], _Span] = {}
    for stmt in walk(work.loop.body):
        for operand in (*reads(stmt), *writes(stmt)):
            one = _span(work, operand, stmt) if operand.buffer.memory is Memory.GM else None
            if one is not None:
                known = found.setdefault((operand.buffer, one.starts, one.base, one.step, one.column), one)
                known.found += one.found if known is not one else []
    yield from found.values()


def _span(work: LoopOperands, operand: Operand, stmt: Stmt) -> _Span | None:
    """What an element belongs to; None if it has no step along the last axis, or begins in front of its tensor."""
    if operand.dims is None or len(operand.dims) != len(operand.buffer.shape):
        return None
    *outer, last = [dim.node for dim in operand.dims]
    if not isinstance(last, cst.BaseExpression):
        return None
    index = work.evaluator.sym(work.lets.expand(last), stmt.env)
    column, step = _stepped(index, work.ranges)
    if column is None:
        return None
    rest = index - column.var * step
    offset = next((factor for monomial, factor in rest.terms if not monomial), 0) % step
    base = size_text(rest - offset)
    if base is None or any(rest.depends_on(item.name) for item in work.ranges):
        return None
    if not work.is_inside(last, rest - offset, stmt):
        return None
    starts = []
    for node in outer:
        axis = (
            axis_of(node, work.ranges, work.lets, work.evaluator, stmt.env)
            if isinstance(node, cst.BaseExpression)
            else None
        )
        if axis is None or axis.range is column or not work.is_inside(cst.parse_expression(axis.start), axis.lo, stmt):
            return None
        starts.append((axis.start, axis.range))
    used = [item for _, item in starts if item is not None]
    if len(used) != len(set(map(id, used))) or len(used) >= _MATRIX:
        return None
    return _Span(operand.buffer, tuple(starts), base, step, column, [(operand, offset)])


def _stepped(index: Sym, ranges: Sequence[Range]) -> tuple[Range | None, int]:
    for item in ranges:
        for monomial, factor in index.terms:
            if 1 < factor <= _MOST and Sym.of({monomial: 1}) == item.var:
                return item, factor
    return None, 0


def _is_moved(loop: Loop, span: _Span) -> bool:
    """Only loads, or stores of all elements by statements that always run, each over the whole loop."""
    stored = [stmt for stmt in walk(loop.body) if any(o.buffer is span.buffer for o in writes(stmt))]
    if not stored:
        return True
    own = {id(operand) for operand, _ in span.found}
    mine = [stmt for stmt in loop.body if isinstance(stmt, Store) and not stmt.augmented and id(stmt.target) in own]
    read = any(o.buffer is span.buffer for stmt in walk(loop.body) for o in reads(stmt))
    every = {id(item) for item in span.ranges} == {id(item) for item in loop.ranges}
    return (
        len(mine) == len(stored) == len(own) == span.step
        and not read
        and every
        and len({o for _, o in span.found}) == span.step
    )


def _rewrite(job: Job, loop: Loop, parents: tuple[Stmt, ...], spans: list[_Span]) -> None:
    work, edits = LoopOperands(job, loop, parents), Edits(job.file.index)
    allocations: list[str] = []
    before: list[str] = []
    after: list[str] = []
    for span in spans:
        tile = work.names.fresh(f"{span.buffer.name.lower()}_tile", f"{span.buffer.name.lower()}_span")
        shape = shape_text(job.kernel, [*(extent_text(item).strip("()") for item in span.ranges[:-1]), span.width])
        allocations.append(f"{tile} = T.alloc_shared({shape}, {dtype_text(span.buffer)})")
        written = any(o.buffer is span.buffer for stmt in walk(loop.body) for o in writes(stmt))
        (after if written else before).append(
            f"T.copy({tile}, {span.region()})" if written else f"T.copy({span.region()}, {tile})"
        )
        for operand, offset in span.found:
            places = [item.name for item in span.ranges[:-1]]
            place = f"{span.step} * {span.column.name}" + (f" + {offset}" if offset else "")
            edits.replace(operand.node, cst.parse_expression(f"{tile}[{', '.join([*places, place])}]"))
        how = "stored behind the loop" if written else "loaded before the loop"
        job.change(
            "TL167",
            loop.node,
            f"whole rows of `{span.buffer.name}` are {how}, the loop has every element of step {span.step}",
        )
    top = parents[0] if parents else loop
    above = job.kernel.body[: next(n for n, stmt in enumerate(job.kernel.body) if stmt is top)]
    known = [stmt for stmt in above if isinstance(stmt, Alloc)]
    if known:
        edits.replace_many(known[-1].node, [known[-1].node, *parse(job, "\n".join(allocations) + "\n", loop.node)])
    else:
        before[:0] = allocations
    new: list[cst.CSTNode] = []
    new += parse(job, "\n".join(before) + "\n", loop.node) if before else []
    new.append(loop.node)
    new += parse(job, "\n".join(after) + "\n", loop.node) if after else []
    edits.replace_many(loop.node, new)
    job.apply(edits)
