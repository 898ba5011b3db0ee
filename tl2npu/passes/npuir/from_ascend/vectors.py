"""Which vectors of a kernel stand along the rows of tiles, and which along their columns.

A reduction in AscendNPU IR keeps the rank of what it reduces, and operations spread ``[M, 1]`` and ``[1, N]`` over
``[M, N]``. Vectors that one operation takes together get the same axis, so a group has it or has it not.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Buffer, Copy, Kernel, Memory, Op, Operand, Scalar, Stmt, Store, walk
from tl2npu.passes.npuir.from_ascend.counterparts import REDUCTIONS
from tl2npu.passes.npuir.from_ascend.row_loops import Part, RowLoop, find, operands


class Axis(enum.Enum):
    """Where the unit axis goes."""

    LAST = "[M, 1]"
    FIRST = "[1, N]"


class Vectors:
    """The vectors that need a unit axis: ``axes``."""

    def __init__(self, kernel: Kernel) -> None:
        self._group: dict[Buffer, Buffer] = {}
        self._wanted: dict[Buffer, list[tuple[Axis, Stmt]]] = {}
        self._flat: dict[Buffer, Stmt] = {}
        loops = find(kernel)
        inside = {id(stmt): loop for loop in loops.values() for stmt in loop.loop.body}
        for stmt in walk(kernel.body):
            if id(stmt) in loops:
                self._rows(loops[id(stmt)])
            elif id(stmt) not in inside:
                self._statement(stmt)
        self.axes: dict[Buffer, Axis] = {}
        for buffer in self._group:
            self._decide(buffer)

    def _decide(self, buffer: Buffer) -> None:
        root = self._root(buffer)
        wanted = [entry for one in self._group if self._root(one) is root for entry in self._wanted.get(one, ())]
        if not wanted:
            return
        axis, _ = wanted[0]
        for other, stmt in wanted:
            if other is not axis:
                text = f"`{buffer.name}` belongs to the rows of a tile here, and to its columns elsewhere"
                raise Blocked("TL429", stmt.node, text)
        if axis is Axis.LAST and buffer in self._flat:
            text = f"`{buffer.name}` holds one value per row of a tile, but here it is copied as a row"
            raise Blocked("TL429", self._flat[buffer].node, text)
        self.axes[buffer] = axis

    def _rows(self, found: RowLoop) -> None:
        for stmt in found.loop.body:
            for operand in operands(stmt):
                part = found.parts[id(operand)]
                if part is not Part.ROW and _is_vector(operand.buffer):
                    self._want(operand.buffer, Axis.LAST if part is Part.ELEMENT else Axis.FIRST, stmt)

    def _statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, Store):
            target = stmt.target
            if target.buffer.memory is Memory.GM or target.dims is None:
                return
            places = [dim.lo for dim in target.dims]
            loads = [load for load in stmt.value.loads if [dim.lo for dim in load.dims or ()] == places]
            self._together([target.buffer, *(load.buffer for load in loads)], stmt)
        elif isinstance(stmt, Copy):
            self._copy(stmt)
        elif isinstance(stmt, Op) and stmt.op.name in REDUCTIONS:
            self._reduction(stmt)
        elif isinstance(stmt, Op) and stmt.op.name == "tile.broadcast":
            src = stmt.args["src"]
            if isinstance(src, Operand) and _is_vector(src.buffer):
                axis = stmt.args.get("axis")
                known = axis.sym.constant if isinstance(axis, Scalar) else None
                if known is None:
                    raise Blocked(
                        "TL429",
                        stmt.node,
                        f"`axis` is missing: cannot tell whether `{src.buffer.name}` is a row or a column",
                    )
                self._want(src.buffer, Axis.LAST if known == 1 else Axis.FIRST, stmt)
        elif isinstance(stmt, Op) and stmt.op.name.startswith("tile."):
            taken = [o for o in operands(stmt) if not o.is_indexed]
            self._together([operand.buffer for operand in taken], stmt)
            if any(_is_row(operand) for operand in taken):
                for operand in taken:
                    if _is_vector(operand.buffer):
                        self._want(operand.buffer, Axis.FIRST, stmt)

    def _copy(self, stmt: Copy) -> None:
        src, dst = stmt.src, stmt.dst
        if Memory.GM in (src.buffer.memory, dst.buffer.memory):
            return
        if _is_vector(src.buffer) and _is_vector(dst.buffer):
            self._together([src.buffer, dst.buffer], stmt)
        for one, other in ((src, dst), (dst, src)):
            if _is_vector(one.buffer) and _is_row(other):
                self._flat[one.buffer] = stmt

    def _reduction(self, stmt: Op) -> None:
        src, out, dim = stmt.args["buffer"], stmt.args["out"], stmt.args.get("dim")
        if not isinstance(src, Operand) or not isinstance(out, Operand):
            return
        if len(src.buffer.shape) == 2 and _is_vector(out.buffer):
            axis = -1 if dim is None else dim.sym.constant if isinstance(dim, Scalar) else None
            if axis not in (-2, -1, 0, 1):
                raise Blocked("TL429", stmt.node, f"cannot tell the axis of this reduction of `{src.buffer.name}`")
            self._want(out.buffer, Axis.LAST if axis in (-1, 1) else Axis.FIRST, stmt)

    # groups ----------------------------------------------------------------------------------------------------------

    def _together(self, buffers: Iterable[Buffer], stmt: Stmt) -> None:
        taken = list(buffers)
        vectors = [buffer for buffer in taken if _is_vector(buffer)]
        for one in vectors:
            self._group.setdefault(one, one)
            self._group[self._root(one)] = self._root(vectors[0])
        for buffer in taken if vectors else ():
            if len(buffer.shape) == 2 and buffer.shape[1].constant == 1:
                self._want(vectors[0], Axis.LAST, stmt)
            elif len(buffer.shape) == 2 and buffer.shape[0].constant == 1:
                self._want(vectors[0], Axis.FIRST, stmt)

    def _want(self, buffer: Buffer, axis: Axis, stmt: Stmt) -> None:
        self._group.setdefault(buffer, buffer)
        self._wanted.setdefault(buffer, []).append((axis, stmt))

    def _root(self, buffer: Buffer) -> Buffer:
        while self._group[buffer] is not buffer:
            buffer = self._group[buffer]
        return buffer


def _is_vector(buffer: Buffer) -> bool:
    return len(buffer.shape) == 1 and buffer.is_tile


def _is_row(operand: Operand) -> bool:
    """One row of a tile with more than one."""
    dims = operand.dims
    if dims is None or len(dims) != 2 or operand.buffer.memory is Memory.GM:
        return False
    return dims[0].is_point and not dims[1].is_point
