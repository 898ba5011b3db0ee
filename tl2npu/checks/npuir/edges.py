"""Copies that go on behind the end of a tensor.

Ascend C and GPUs cut a tile at the end of its tensor; ``EmitCopyMemrefToTensor`` of ``src/target/codegen_npuir_dev.cc``
takes the region as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from tl2npu.checks.operators.samples import Place, Sampler
from tl2npu.checks.operators.starts import moves
from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Copy, Memory, Operand, Range, Store, in_parallel
from tl2npu.kernel.npuir_loops import scalar_reason
from tl2npu.kernel.symbolic import Opaque, Sym, Var

_SOME = (64, 200)
"""Sizes of a launch that nobody gives."""


@dataclass(frozen=True, eq=False)
class Overrun:
    """A copy whose region ends behind its tensor along some axes; ``shown``: for which block and sizes.

    ``known``: a call of the file shows it, or the tensor has one size; else ``sizes`` decide, which callers give.
    ``outside``: axes along which the region may even begin behind the end.
    """

    copy: Copy
    axes: tuple[int, ...]
    outside: frozenset[int]
    shown: str
    known: bool
    sizes: frozenset[str]


def overruns(subject: Subject) -> Iterator[Overrun]:
    """Every copy that is not proved to stay inside, and whether the calls of the file leave the tensor."""
    sampler = Sampler(subject)
    given = subject.options.calls
    grid = subject.kernel.launch.grid if subject.kernel.launch is not None else ()
    tensors = [buffer for buffer in subject.kernel.buffers.values() if buffer.memory is Memory.GM]
    launched = {n for e in grid for n in e.names} & {n for tensor in tensors for e in tensor.shape for n in e.names}
    callers = callers_of(subject.file, subject.located, given=given)
    values = [caller.values for caller in callers]
    asks = not given and any(caller.takes_options for caller in callers)
    for move in moves(subject):
        stmt = move.placed.stmt
        if not isinstance(stmt, Copy) or stmt.options or stmt.via:
            continue
        place = sampler.place(move.placed)
        calls = sampler.calls(move.placed, values)
        wrong: list[int] = []
        outside: set[int] = set()
        shown = ""
        sizes: set[str] = set()
        for axis, low, extent, size in _axes(move.outer, move.inner):
            goal = place.bounds.expanded(size - low - extent)
            if any(isinstance(atom, Opaque) and atom.head.startswith("load ") for atom in goal.atoms()):
                continue
            if place.bounds.is_not_negative(goal):
                continue
            tried = calls
            names = _sizes(place, goal)
            found = _found(sampler, move.placed, goal, tried)
            own = size.variables() - extent.variables()
            if not any(names <= known.keys() for known in calls) and not found:
                if calls and all(own <= known.keys() and names - known.keys() <= launched for known in calls):
                    tried = [{**dict.fromkeys(names, some), **known} for known in calls for some in _SOME]
                    found = _found(sampler, move.placed, goal, tried)
                else:
                    sizes |= own
            if asks and not found:
                sizes |= own
            if found:
                wrong.append(axis)
                shown = shown or found[0]
                if _found(sampler, move.placed, place.bounds.expanded(size - low - 1), tried):
                    outside.add(axis)
        if wrong or sizes:
            yield Overrun(stmt, tuple(wrong), frozenset(outside), shown, bool(wrong), frozenset(sizes))


def elements_behind(subject: Subject) -> Iterator[tuple[Store, Mapping[Operand, tuple[int, ...]]]]:
    """Elements of a tensor that a ``T.Parallel`` stores or loads one by one, perhaps behind the end, with the axes
    along which it does: where the calls of the file give the sizes, those decide. A row that a table picks is
    trusted, and what becomes a vector operation on rows is left to it."""
    sampler = Sampler(subject)
    values = [c.values for c in callers_of(subject.file, subject.located, given=subject.options.calls)]
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Store) or stmt.via or not in_parallel(placed.parents):
            continue
        place, calls = sampler.place(placed), sampler.calls(placed, values)
        moving = {name for item in placed.ranges for name in item.var.names}
        outermost = next(loop for loop in placed.loops if loop.kind == "parallel")
        in_rows = not scalar_reason(outermost, subject.late, subject.file.names)
        found: dict[Operand, tuple[int, ...]] = {}
        for operand in (stmt.target, *stmt.value.loads):
            if operand.buffer.memory is not Memory.GM or (in_rows and _along_rows(operand, placed.ranges[-1])):
                continue
            for axis, (dim, size) in enumerate(zip(operand.dims or (), operand.buffer.shape, strict=False)):
                goal = place.bounds.expanded(size - 1 - dim.lo)
                if not _goes_along(dim.lo, moving) or place.bounds.is_not_negative(goal):
                    continue
                names, from_table = _sizes(place, goal), any(isinstance(atom, Opaque) for atom in goal.atoms())
                known = not from_table and any(names <= call.keys() for call in calls)
                if not known or _found(sampler, placed, goal, calls):
                    found[operand] = (*found.get(operand, ()), axis)
        if found:
            yield stmt, found


def _sizes(place: Place, goal: Sym) -> set[str]:
    """The sizes that an expression depends on."""
    return {atom.name for atom in place.everything(goal) if isinstance(atom, Var)} - place.bounds.ranges.keys()


def _goes_along(index: Sym, moving: Set[str]) -> bool:
    """Whether a loop counts in an index itself, not only in that of a table."""
    counted = (atom for monomial, _ in index.terms for atom in monomial if not isinstance(atom, Opaque))
    return any(atom.names & moving for atom in counted)


def _along_rows(operand: Operand, innermost: Range) -> bool:
    return operand.dims is not None and operand.dims[-1].lo.depends_on(str(innermost.var))


def _found(sampler: Sampler, placed: Placed, goal: Sym, tried: Iterable[Mapping[str, int]]) -> list[str]:
    """Where a number is negative, for those sizes that show it."""
    return [where for known in tried if (where := sampler.find(placed, goal, known)) is not None]


def _axes(outer: Operand, inner: Operand) -> Iterator[tuple[int, Sym, Sym, Sym]]:
    """Axis, start, extent and size of the tensor, for every axis along which more than one element is taken."""
    shape = outer.buffer.shape
    if outer.dims is None or len(outer.dims) != len(shape):
        return
    lent = [dim.extent for dim in inner.dims] if inner.dims is not None else list(inner.buffer.shape)
    starts_only = all(dim.is_point for dim in outer.dims)
    for axis, (dim, size) in enumerate(zip(outer.dims, shape, strict=True)):
        extent = dim.extent
        if starts_only:
            place = axis - len(shape) + len(lent)
            extent = lent[place] if place >= 0 else None
        if extent is not None and extent.constant != 1:
            yield axis, dim.lo, extent, size
