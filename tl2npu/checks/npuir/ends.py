"""TL417: copies that go on behind the end of a tensor.

A copy of a GPU stops where the tensor ends, and puts zeros into the rest of the tile. One of AscendNPU IR is a copy of
the whole region: ``src/target/codegen_npuir_dev.cc``, ``AscendCopyCodegen``, makes a view of that size.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.samples import Sampler
from tl2npu.checks.starts import Move, moves
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.bounds import is_size
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Operand
from tl2npu.kernel.symbolic import Opaque, Sym, Var

_CALLS = 6
_WHOLE, _RAGGED, _TILE, _FEW = 1024, 1000, 64, 8


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each tensor and axis; one for each size of which nothing is known."""
    sampler = Sampler(subject)
    seen: set[object] = set()
    for move in moves(subject):
        place = sampler.place(move.placed)
        for axis, (low, extent, size) in enumerate(_axes(move)):
            goal = place.bounds.expanded(size - low - extent)
            if (id(move.outer.buffer), axis) in seen or any(_is_load(atom) for atom in place.everything(goal)):
                continue
            if place.bounds.is_not_negative(goal):
                continue
            found = _judge(subject, sampler, move, goal, extent, size)
            unknown = size if found is not None and found.severity == "warning" else None
            if found is not None and unknown not in seen:
                yield found
            if found is not None:
                seen |= {(id(move.outer.buffer), axis), unknown} - {None}


def _judge(subject: Subject, sampler: Sampler, move: Move, goal: Sym, extent: Sym, size: Sym) -> Finding | None:
    node, shown = move.placed.stmt.node, f"`{code(move.outer.node)}`"
    text = f"{shown} goes on behind the end of `{move.outer.buffer.name}`"
    calls = [known for known in subject.values if sampler.is_reachable(move.placed, known)][:_CALLS]
    wrong = [one for known in calls if (one := sampler.find(move.placed, goal, known)) is not None]
    if wrong:
        return Finding("TL417", node, f"{text}{wrong[0]}")
    names = {atom.name for atom in sampler.place(move.placed).everything(goal) if isinstance(atom, Var)}
    if calls and all(names & known.keys() >= {name for name in names if is_size(name)} for known in calls):
        return None  # every call of the file has whole tiles
    sizes = size.variables() - extent.variables()
    if not sizes:
        return None
    names |= {name for tensor in subject.kernel.params for part in tensor.shape for name in part.variables()}
    values = {name: _TILE if name in extent.variables() else _FEW for name in names if is_size(name)}
    values |= calls[0] if calls else {}
    whole, ragged = (
        sampler.find(move.placed, goal, {**values, **dict.fromkeys(sizes, number)}, {*values, *sizes})
        for number in (_WHOLE, _RAGGED)
    )
    if whole is None and ragged is not None:
        return Finding("TL417", node, f"{text} if `{size}` is no multiple of the tile", "warning")
    return None


def _axes(move: Move) -> Iterator[tuple[Sym, Sym, Sym]]:
    """Start, extent and size of every axis of the tensor of which more than one element is taken."""
    outer = move.outer
    if outer.dims is None or len(outer.dims) != len(outer.buffer.shape):
        return
    borrowed = _borrowed(outer, move.inner)
    for dim, own, size in zip(outer.dims, borrowed, outer.buffer.shape, strict=True):
        extent = dim.extent if dim.extent is not None else own
        if extent is not None:
            yield dim.lo, extent, size


def _borrowed(outer: Operand, inner: Operand) -> list[Sym | None]:
    """The extents that start indices take from the tile, from the last axis on."""
    assert outer.dims is not None
    rank = len(outer.dims)
    if any(not dim.is_point for dim in outer.dims):
        return [None] * rank
    sizes = list(inner.buffer.shape) if inner.dims is None else [dim.extent for dim in inner.dims]
    return ([None] * rank + list(sizes))[-rank:]


def _is_load(atom: object) -> bool:
    return isinstance(atom, Opaque) and atom.head.startswith("load ")
