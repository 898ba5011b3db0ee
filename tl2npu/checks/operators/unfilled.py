"""TL873: loads of 8-bit and 64-bit tiles that end with their tensor and leave the rest of the tile as it was.

``copy_gm_to_ub`` fills a tile before it loads less than all of it, but only with types that ``Duplicate`` has
(``src/tl_templates/ascend/common.h:40-45, 209-219``): of 16 and of 32 bits. With others the last block of 32 bytes of
each row is padded, and nothing else. A GPU loads zeros. Target pto has code of its own, with a fill for every type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.operators.starts import Move, extents_of, moves
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.clamped import clamped_axes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Memory, Op, Operand, Scalar, Store
from tl2npu.kernel.sizes import FILLED, ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.results import Severity


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each load that ends with its tensor in a known call; columns stop a kernel, and so do rows and
    elements of vectors that come into a result; others are told.

    Of sizes that nobody knows: where more rows are stored than the tensor has; what is summed is told, and what moves
    rows of a tensor whose size each call chooses.
    """
    if subject.target == "pto":
        return
    sampler = Sampler(subject)
    for move in moves(subject):
        tile, size = move.inner.buffer, ITEM_SIZE.get(move.inner.buffer.dtype)
        stmt = move.placed.stmt
        if not isinstance(stmt, Copy) or stmt.dst is not move.inner:
            continue
        if tile.memory is not Memory.UB or size is None or size in FILLED:
            continue
        if (found := _rest(sampler, move)) is not None:
            yield found


def _rest(sampler: Sampler, move: Move) -> Finding | None:
    last = len(move.outer.buffer.shape) - 1
    for axis in sorted(clamped_axes(extents_of(move)), reverse=True):
        goal = _goal(move, axis)
        if sampler.place(move.placed).bounds.is_not_negative(goal):
            continue
        further = any(((_goal(store, row) - goal).constant or 0) > 0 for store, row in _stores(sampler, move, axis))
        for known in sampler.calls(move.placed, sampler.subject.values):
            where = sampler.find(move.placed, goal, known)
            if where is not None:
                of_columns = axis == last and len(move.inner.buffer.shape) > 1
                used = of_columns or further or _are_used(sampler, move, axis, known)
                return _finding(move, where, None if used else "warning")
        if further:
            return _finding(move, "", None)
        flow = _flow(sampler, move, axis)
        if flow is None:
            continue
        is_any = sampler.subject.is_runtime(move.outer.buffer.shape[axis])  # each call may end where it likes
        if flow.mixed or (flow.moved and is_any):
            return _finding(move, "", "warning")  # of sizes that nobody knows, and that may be multiples of the tile
    return None


def _finding(move: Move, where: str, severity: Severity | None) -> Finding:
    text = f"`{code(move.outer.node)}` ends with `{move.outer.buffer.name}`{where}: an NPU fills the rest"
    text += f" of a tile with zeros for 16-bit and 32-bit types only, not for {move.inner.buffer.dtype}"
    return Finding("TL873", move.placed.stmt.node, text, severity)


def _goal(move: Move, axis: int) -> Sym:
    """Negative where the region goes on behind the end of its tensor."""
    low = move.outer.dims[axis].lo if move.outer.dims else const(0)
    return move.outer.buffer.shape[axis] - low - extents_of(move)[axis]


def _are_used(sampler: Sampler, load: Move, axis: int, known: Mapping[str, int]) -> bool:
    """Whether rows behind the end come into a result: one sums or moves rows, or stores more than there are."""
    if _is_mixed(sampler, load, axis):
        return True
    stores = _stores(sampler, load, axis)
    return any(sampler.find(store.placed, _goal(store, row), known) is None for store, row in stores)


def _is_mixed(sampler: Sampler, load: Move, axis: int) -> bool:
    flow = _flow(sampler, load, axis)
    return flow is not None and (flow.mixed or flow.moved)


def _flow(sampler: Sampler, load: Move, axis: int) -> RowFlow | None:
    row = axis - len(load.outer.buffer.shape) + len(load.inner.buffer.shape)
    return RowFlow.of(sampler.subject, load.inner.buffer, row) if row >= 0 else None


def _stores(sampler: Sampler, load: Move, axis: int) -> Iterator[tuple[Move, int]]:
    """The stores of the rows that are loaded along an axis, each with the axis of its tensor."""
    if (flow := _flow(sampler, load, axis)) is None:
        return
    for move in moves(sampler.subject):
        stored = move.inner
        if not isinstance(move.placed.stmt, Copy) or move.placed.stmt.src is not stored or move.placed.conditions:
            continue
        ahead = len(move.outer.buffer.shape) - len(stored.buffer.shape)
        for buffer, place in flow.places:
            if buffer is stored.buffer and stored.is_whole and ahead + place >= 0:
                yield move, ahead + place


# Where the rows of a tile go: to the same rows of others, up to a tensor, or into what all rows share.


@dataclass(eq=False)
class RowFlow:
    """Follows one axis of a tile on the vector cores; what is not clear is not followed.

    ``places``: tiles with the axis on which those rows lie. ``mixed``: something certainly makes one value of several
    rows, or gives a row to others, outside of a condition. ``moved``: something may give a row to others, or lets a
    single row decide, also under a condition.
    """

    subject: Subject
    places: dict[tuple[Buffer, int], None] = field(default_factory=dict)
    mixed: bool = False
    moved: bool = False

    @classmethod
    def of(cls, subject: Subject, tile: Buffer, axis: int) -> RowFlow:
        """The way of all rows of a tile."""
        flow = cls(subject, {(tile, axis): None})
        known = 0
        while known < len(flow.places):
            known = len(flow.places)
            for placed in subject.statements:
                for buffer, place in tuple(flow.places):
                    flow._follow(placed, buffer, place)
        return flow

    def _follow(self, placed: Placed, buffer: Buffer, axis: int) -> None:
        stmt = placed.stmt
        operands = (*reads(stmt), *writes(stmt))
        self.moved |= any(load.buffer is buffer for one in operands for dim in one.dims or () for load in dim.loads)
        if isinstance(stmt, Store):
            self._store(placed, stmt, buffer, axis)
        elif isinstance(stmt, (Branch, Let)):
            loads = stmt.cond.loads if isinstance(stmt, Branch) else stmt.value.loads
            self.mixed |= any(_is_one_row(load, buffer, axis) for load in loads) and not placed.conditions
            self.moved |= any(load.buffer is buffer and not _is_first_row(load, axis) for load in loads)
        elif isinstance(stmt, (Copy, Op)) and any(operand.buffer is buffer for operand in reads(stmt)):
            if isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE:
                dim = stmt.args.get("dim")
                along = dim.sym.constant if isinstance(dim, Scalar) else -1
                if along is None or along % len(buffer.shape) == axis:
                    self.mixed |= along is not None and not placed.conditions
                    return
            if isinstance(stmt, Copy) and stmt.src.buffer is buffer and stmt.dst.buffer.memory is Memory.UB:
                self.moved |= not _starts_alike(stmt.src, stmt.dst, axis)
            turned = isinstance(stmt, Op) and stmt.op.name == "tile.transpose"
            for operand in writes(stmt):
                if operand.buffer.memory is Memory.UB and axis < len(operand.buffer.shape):
                    self.places.setdefault((operand.buffer, 1 - axis if turned else axis))

    def _store(self, placed: Placed, stmt: Store, buffer: Buffer, axis: int) -> None:
        """``target[i, j] = ... buffer[..., i] ...``: the rows lie on the axis of the target that moves with them."""
        variables = {str(item.var) for item in placed.ranges}
        for load in stmt.value.loads:
            if load.buffer is not buffer or load.dims is None or len(load.dims) != len(buffer.shape):
                continue
            row = load.dims[axis].lo
            moving = row.variables() & variables
            to = [n for n, dim in enumerate(stmt.target.dims or ()) if dim.lo.variables() & moving]
            moved = bool(to) and all(dim.lo != row for dim in stmt.target.dims or ())
            self.moved |= all(dim.lo != row for dim in stmt.target.dims or ()) and not _is_first_row(load, axis)
            if stmt.target.buffer.memory is Memory.UB:
                self.places |= dict.fromkeys((stmt.target.buffer, n) for n in to)
            again = stmt.augmented or any(other.buffer is stmt.target.buffer for other in stmt.value.loads)
            summed = bool(moving) and not to and again
            self.mixed |= (summed or moved or _is_one_row(load, buffer, axis)) and not placed.conditions


def _is_first_row(load: Operand, axis: int) -> bool:
    """The first row is never behind the end."""
    return load.dims is not None and load.dims[axis].lo.is_zero


def _starts_alike(source: Operand, target: Operand, axis: int) -> bool:
    """Whether rows of a tile become the rows with their numbers of another, counted from the last axis."""
    if source.dims is None or target.dims is None:
        return source.is_whole and target.is_whole
    place = axis - len(source.dims) + len(target.dims)
    return place >= 0 and source.dims[axis].lo == target.dims[place].lo


def _is_one_row(load: Operand, buffer: Buffer, axis: int) -> bool:
    """An element of one row for all, which may be behind the end; the first one is not."""
    return load.buffer is buffer and load.dims is not None and bool(load.dims[axis].lo.constant)
