"""TL775, TL776: tiles that are read and that nothing writes, or of which the last part is never written.

On-chip memory holds what was there before: no compiler fills it, and ``tl2npu run`` names the read. A load that is
smaller than its tile does fill the rest, of 16-bit and 32-bit types (``copy_gm_to_ub`` of
``src/tl_templates/ascend/common.h``): it writes all of the tile that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, reads, writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import region
from tl2npu.kernel.model import Buffer, Copy, Memory, Op, Opaque, Operand, Scalar, Stmt, Store
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import Sym, const

_MASKING = ("tile.select", "tile.compare", "tile.transpose", "tile.gather_mask")


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each such tile, where it is read first."""
    unclear, writers = _writers(subject)
    for buffer in subject.kernel.buffers.values():
        if not buffer.is_tile or buffer.memory is Memory.VAR or buffer.index >= 0 or buffer in unclear:
            continue
        if buffer not in writers:
            reader = next((p for p in subject.statements if any(o.buffer is buffer for o in reads(p.stmt))), None)
            if reader is not None:
                yield Finding("TL775", reader.stmt.node, f"`{buffer.name}` is read, but nothing writes it")
        elif (first := _added_to(subject, buffer)) is not None:
            yield Finding("TL775", first.stmt.node, f"`{buffer.name}` is read here before anything writes it")
        elif buffer.memory is Memory.UB and (short := _short(subject, buffer, writers[buffer])) is not None:
            yield short
        elif buffer.memory is Memory.UB and not subject.is_split:  # each vector core has half of the rows then
            yield from _partly(subject, buffer, writers[buffer])


def _added_to(subject: Subject, buffer: Buffer) -> Placed | None:
    """The first statement that touches a tile, if it is one that certainly runs and computes with what is in it."""
    touching = (p for p in subject.statements if any(a.operand.buffer is buffer for a in accesses(p.stmt)))
    first = next(touching, None)
    if first is None or first.conditions or buffer.memory is not Memory.UB:
        return None
    stmt = first.stmt
    whole = isinstance(stmt, Op) and stmt.op.elementwise and stmt.op.name not in _MASKING
    computes = (whole or isinstance(stmt, Store)) and any(operand.buffer is buffer for operand in reads(stmt))
    return first if computes else None


def _writers(subject: Subject) -> tuple[set[Buffer], dict[Buffer, list[tuple[Placed, Operand]]]]:
    """The tiles of which not everything is known, and every write of the others."""
    unclear: set[Buffer] = set()
    found: dict[Buffer, list[tuple[Placed, Operand]]] = {}
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Opaque):
            unclear |= {access.operand.buffer for access in accesses(stmt)}
        if isinstance(stmt, Op) and stmt.op.name == "annotate_address":  # it may lie where another tile does
            unclear |= set(subject.kernel.buffers.values())
        for operand in writes(stmt):
            found.setdefault(operand.buffer, []).append((placed, operand))
    return unclear, found


def _partly(subject: Subject, buffer: Buffer, written: list[tuple[Placed, Operand]]) -> Iterator[Finding]:
    parts = [(placed, _part(placed.stmt, operand)) for placed, operand in written]
    if any(part is None for _, part in parts):
        return
    sampler = Sampler(subject)
    for axis, size in enumerate(buffer.shape):
        for known in subject.values:
            rests = [(p, size - 1 - part[axis][0] - part[axis][1]) for p, part in parts if part is not None]
            if not all(_bounds(sampler, p, known).is_not_negative(rest.substitute(known)) for p, rest in rests):
                break
        else:
            reader = _used(sampler, buffer, axis)
            if reader is not None:
                text = f"all of `{buffer.name}` is read, but nothing writes the end of its axis {axis}"
                yield Finding("TL776", reader.stmt.node, f"{text}: `{code(written[-1][1].node)}` ends before it")
                return


def _short(subject: Subject, buffer: Buffer, written: list[tuple[Placed, Operand]]) -> Finding | None:
    """The only load of a tile takes more than its tensor has from there on, in every block: the rest is padding."""
    placed, target = written[0]
    stmt = placed.stmt
    loads = isinstance(stmt, Copy) and stmt.dst is target and stmt.src.buffer.memory is Memory.GM
    if len(written) > 1 or not loads or target.dims is not None or not isinstance(stmt, Copy):
        return None
    sampler, tensor, ahead = Sampler(subject), stmt.src.buffer, len(stmt.src.buffer.shape) - len(buffer.shape)
    outer = region(stmt.src, stmt.dst)
    if ahead < 0 or len(outer) != len(tensor.shape):
        return None
    for axis, ((low, extent), size) in enumerate(zip(outer[ahead:], tensor.shape[ahead:], strict=True)):
        found = [(known, _bounds(sampler, placed, known)) for known in subject.values]
        beyond = low + extent - size - 1
        if all(bounds.is_not_negative(beyond.substitute(known)) for known, bounds in found):
            reader = _used(sampler, buffer, axis)
            if reader is not None:
                part = f"`{code(stmt.src.node)}` is smaller than `{buffer.name}` on axis {axis}"
                text = f"all of `{buffer.name}` is read, but {part}: what is left of it is padding"
                help = "load one row into a tile of one row, and `T.tile.broadcast` it" if size.constant == 1 else ""
                return Finding("TL776", reader.stmt.node, text, help=help)
    return None


def _part(stmt: Stmt, operand: Operand) -> tuple[tuple[Sym, Sym], ...] | None:
    """Start and extent along each axis; None where all is written, or it cannot be told."""
    dims = operand.dims
    if dims is None or len(dims) != len(operand.buffer.shape):
        return None
    if isinstance(stmt, Copy) and operand is stmt.dst:
        return tuple(region(operand, stmt.src))
    if all(dim.is_point for dim in dims):  # of an operator: from here on
        return tuple((dim.lo, const(1)) for dim in dims) if isinstance(stmt, Store) else None
    return tuple((dim.lo, dim.extent or const(1)) for dim in dims)


def _bounds(sampler: Sampler, placed: Placed, known: Mapping[str, int]) -> Bounds:
    bounds = sampler.place(placed).bounds
    ranges = {name: (low.substitute(known), high.substitute(known)) for name, (low, high) in bounds.ranges.items()}
    return Bounds(ranges, tuple(fact.substitute(known) for fact in bounds.facts), bounds.values)


def _used(sampler: Sampler, buffer: Buffer, axis: int, depth: int = 4) -> Placed | None:
    """The statement that brings the end of an axis into a result: a sum, a maximum along it, or a store."""
    for placed in sampler.subject.statements:
        stmt = placed.stmt
        mine = [operand for operand in reads(stmt) if operand.buffer is buffer and operand.dims is None]
        if not mine or placed.conditions or (isinstance(stmt, Op) and stmt.op.name in _MASKING):
            continue
        if isinstance(stmt, Copy) and stmt.dst.buffer.memory is Memory.GM:
            if _all_is_stored(sampler, placed, stmt, axis):
                return placed
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE:
            dim = stmt.args.get("dim")
            along = dim.sym.constant if isinstance(dim, Scalar) else -1
            if along is not None and along % len(buffer.shape) == axis and "real_shape" not in stmt.args:
                return placed
        elif (isinstance(stmt, Op) and stmt.op.elementwise) or isinstance(stmt, Copy):
            for target in writes(stmt):
                other = target.buffer
                whole = target.dims is None and other.shape == buffer.shape and other.memory is Memory.UB
                alone = whole and all(o.dims is None for o in _writes_of(sampler.subject, other))
                if depth and alone and other is not buffer and _used(sampler, other, axis, depth - 1) is not None:
                    return placed
    return None


def _writes_of(subject: Subject, buffer: Buffer) -> list[Operand]:
    return [operand for placed in subject.statements for operand in writes(placed.stmt) if operand.buffer is buffer]


def _all_is_stored(sampler: Sampler, placed: Placed, stmt: Copy, axis: int) -> bool:
    """Whether a store takes the end of an axis, too: neither a smaller part, nor cut by the end of the tensor."""
    outer, ahead = region(stmt.dst, stmt.src), len(stmt.dst.buffer.shape) - len(stmt.src.buffer.shape)
    if ahead < 0 or len(outer) != len(stmt.dst.buffer.shape):
        return False
    low, extent = outer[ahead + axis]
    rest = stmt.dst.buffer.shape[ahead + axis] - low - extent
    return extent == stmt.src.buffer.shape[axis] and all(
        _bounds(sampler, placed, known).is_not_negative(rest.substitute(known)) for known in sampler.subject.values
    )
