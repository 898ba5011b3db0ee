"""Copies that go on behind the end of a tensor.

Ascend C and GPUs cut a tile at the end of its tensor; ``EmitCopyMemrefToTensor`` of ``src/target/codegen_npuir_dev.cc``
takes the region as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tl2npu.checks.operators.samples import Place, Sampler
from tl2npu.checks.operators.starts import moves
from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Copy, Memory, Operand
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
            names = sizes_of(place, goal)
            found = found_for(sampler, move.placed, goal, tried)
            own = size.variables() - extent.variables()
            if not any(names <= known.keys() for known in calls) and not found:
                if calls and all(own <= known.keys() and names - known.keys() <= launched for known in calls):
                    tried = [{**dict.fromkeys(names, some), **known} for known in calls for some in _SOME]
                    found = found_for(sampler, move.placed, goal, tried)
                else:
                    sizes |= own
            if asks and not found:
                sizes |= own
            if found:
                wrong.append(axis)
                shown = shown or found[0]
                if found_for(sampler, move.placed, place.bounds.expanded(size - low - 1), tried):
                    outside.add(axis)
        if wrong or sizes:
            yield Overrun(stmt, tuple(wrong), frozenset(outside), shown, bool(wrong), frozenset(sizes))


def sizes_of(place: Place, goal: Sym) -> set[str]:
    """The sizes that an expression depends on."""
    return {atom.name for atom in place.everything(goal) if isinstance(atom, Var)} - place.bounds.ranges.keys()


def found_for(sampler: Sampler, placed: Placed, goal: Sym, tried: Iterable[Mapping[str, int]]) -> list[str]:
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
