"""Where the rows of a tile go: to the same rows of others, up to a tensor, or into what all rows share."""

from __future__ import annotations

from dataclasses import dataclass, field

from tl2npu.checks.subject import Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Memory, Op, Operand, Scalar, Store


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
