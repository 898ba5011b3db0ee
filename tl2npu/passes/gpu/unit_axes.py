"""TL155: a tile whose rows are not the last axis but one of its tensor gets that tensor's axes, for ``threads=2``.

The compiler adds the offset of the second vector core to axis ``rank(tensor) - rank(tile)`` of the tensor
(``src/transform/ascend_vid_reduction.cc``). With ``Q[b, s0:s1, h, :]`` and a tile of two axes that is the head. A tile
``(rows, 1, columns)`` has the offset on the rows. The memory is the same; the copies take strides and counts from the
region of the tensor (``src/op/ascend.cc``), and only copies use such a tile: the lowering of ``T.Parallel`` and of the
reductions is not asked to read three axes.

A load that is cut off at the end of the tensor fills the tile before, but of this tile only the first row
(``copy_gm_to_ub`` counts the last axis but one). Nobody stores rows behind the end if every store ends with its rows
where the load does; where one does not, where columns may be missing, or a gemm adds up the rows, the tile is filled by
a statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.assertions import divisions
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Memory, Op, Operand
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.ranges.reach import parents_of
from tl2npu.passes.gpu.memory import allocations
from tl2npu.passes.job import Job
from tl2npu.passes.writing import numbers as fills_values
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, replaced


@dataclass(eq=False)
class _Tile:
    """A tile with ``units`` axes of length 1 between its rows and its columns in every tensor that it is copied with.

    ``pure``: nothing but whole copies uses it, so that the tile itself can have these axes.
    """

    units: int
    copies: list[Copy] = field(default_factory=list)
    pure: bool = True


def insert(job: Job) -> bool:
    """Give the tiles the axes of their tensors; False if there is none, or one that cannot be treated so."""
    kernel = job.kernel
    found = _tiles(kernel)
    if not found:
        return False
    edits = Edits(job.file.index)
    names = Names(job)
    own = {buffer: tile for buffer, tile in found.items() if tile.pure}
    behind = _Behind(job)
    for buffer, tile in found.items():
        assert isinstance(buffer.node, cst.Call)
        if tile.pure:
            shape = argument(buffer.node, "shape", 0)
            if shape is None:
                return False
            edits.replace(shape, _with_units(buffer, shape, tile.units))
            job.change("TL155", buffer.node, f"gave `{buffer.name}` the axes of its tensor")
            for copy in tile.copies:
                if copy.dst.buffer is buffer and copy.dst.is_whole and behind.is_used(copy):
                    edits.replace_many(
                        copy.node, [*parse(job, _fill(job, buffer, copy, buffer.name), copy.node), copy.node]
                    )
        elif not _land(job, edits, buffer, tile, names.fresh(f"{buffer.name}_rows"), behind):
            return False
    for stmt in kernel.walk():
        if not isinstance(stmt, Copy):
            continue
        units = [own[o.buffer].units if o.buffer in own else 0 for o in (stmt.src, stmt.dst)]
        for operand in (stmt.src, stmt.dst):
            if operand.buffer in own and not operand.is_whole and operand.dims is not None:
                zeros = ", 0" * own[operand.buffer].units
                text = f"{operand.buffer.name}[{code(operand.dims[0].node)}{zeros}, :]"
                edits.replace(operand.node, cst.parse_expression(text))
        if Memory.GM in (stmt.src.buffer.memory, stmt.dst.buffer.memory) or units[0] == units[1]:
            continue
        for operand in (stmt.src, stmt.dst):
            if operand.buffer in own and operand.is_whole:
                edits.replace(operand.node, cst.parse_expression(_view(operand.buffer.name, own[operand.buffer].units)))
    job.apply(edits)
    allocations.finish(job)
    return True


def _tiles(kernel: Kernel) -> dict[Buffer, _Tile]:
    found: dict[Buffer, _Tile] = {}
    for stmt in kernel.walk():
        if not isinstance(stmt, Copy):
            continue
        for inner, outer in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
            units = _units(inner, outer)
            if units:
                tile = found.setdefault(inner.buffer, _Tile(units))
                tile.copies.append(stmt)
                tile.pure = tile.pure and tile.units == units
    for stmt in kernel.walk():
        for access in accesses(stmt):
            known = found.get(access.operand.buffer)
            if known is not None and not _only_copied(stmt, access.operand, known):
                known.pure = False
    return found


def _units(inner: Operand, outer: Operand) -> int:
    """How many axes of length 1 the tensor has between the rows and the columns of a whole tile."""
    tile, dims = inner.buffer, outer.dims
    if tile.memory is not Memory.UB or outer.buffer.memory is not Memory.GM:
        return 0
    if not inner.is_whole:
        return _units_of_row(inner, outer)
    if len(tile.shape) != 2 or dims is None or len(dims) != len(outer.buffer.shape) or dims[-1].is_point:
        return 0
    rows = _rows(outer)
    if rows is None or any(not dim.is_point for dim in dims[:rows]) or dims[rows].extent != tile.shape[0]:
        return 0
    return len(dims) - 2 - rows


def _units_of_row(inner: Operand, outer: Operand) -> int:
    """The same for one row of a tile, ``x[i, :]``, and the place of a tensor that moves with ``i``."""
    mine, dims = inner.dims, outer.dims
    if mine is None or len(mine) != 2 or not mine[0].is_point or mine[1].is_point or not mine[1].lo.is_zero:
        return 0
    if mine[1].extent != inner.buffer.shape[1] or dims is None or len(dims) != len(outer.buffer.shape):
        return 0
    (row,) = mine[0].lo.variables() if len(mine[0].lo.variables()) == 1 else ("",)
    moving = [axis for axis, dim in enumerate(dims) if row and dim.lo.depends_on(row)]
    if len(moving) != 1 or dims[-1].is_point or any(not dim.is_point for dim in dims[:-1]):
        return 0
    return len(dims) - 2 - moving[0]


def _rows(outer: Operand) -> int | None:
    """The axis of the rows: the last one but the columns along which there is more than a point."""
    dims = outer.dims or ()
    return next((axis for axis in reversed(range(len(dims) - 1)) if not dims[axis].is_point), None)


def _only_copied(stmt: object, operand: Operand, tile: _Tile) -> bool:
    if isinstance(stmt, Op):
        return stmt.op.kind is Kind.FILL and operand.is_whole
    if isinstance(stmt, Copy) and not operand.is_whole:
        return stmt in tile.copies
    if not isinstance(stmt, Copy):
        return False
    other = stmt.dst if operand is stmt.src else stmt.src
    if other.buffer.memory is Memory.GM:
        return stmt in tile.copies
    return other.buffer.memory is Memory.UB and other.is_whole


def _land(job: Job, edits: Edits, buffer: Buffer, tile: _Tile, name: str, behind: _Behind) -> bool:
    """A second tile for the copies with global memory; the tile that computes stays as it is."""
    assert isinstance(buffer.node, cst.Call)
    shape = argument(buffer.node, "shape", 0)
    alone = any(not copy.src.is_whole and copy.src.buffer is buffer for copy in tile.copies)
    alone = alone or any(not copy.dst.is_whole and copy.dst.buffer is buffer for copy in tile.copies)
    if shape is None or buffer.statement is None or alone:
        return False
    call = replaced(buffer.node, {id(shape): _with_units(buffer, shape, tile.units)})
    edits.replace_many(buffer.statement, [buffer.statement, *parse(job, f"{name} = {code(call)}", buffer.statement)])
    for copy in tile.copies:
        loads = copy.dst.buffer is buffer
        view = _view(name, tile.units)
        text = f"T.copy({view}, {buffer.name})" if loads else f"T.copy({buffer.name}, {view})"
        extra = parse(job, text, copy.node)
        moved = replaced(copy.node, {id((copy.dst if loads else copy.src).node): cst.Name(name)})
        before = []
        if loads and behind.is_used(copy):
            before = parse(job, _fill(job, buffer, copy, name), copy.node)
        edits.replace_many(copy.node, [*before, moved, *extra] if loads else [*extra, moved])
    job.change("TL155", buffer.node, f"`{name}`, with the axes of the tensor, stands between it and `{buffer.name}`")
    return True


class _Behind:
    """Whether anything is made of the elements of a tile that lie behind the end of its tensor."""

    def __init__(self, job: Job) -> None:
        kernel = job.kernel
        self._known = Known(kernel, job.located.evaluator)
        self._sizes = divisions(job.file, job.located)
        self._turns = {item.var for loop in kernel.walk() if isinstance(loop, Loop) for item in loop.ranges}
        self._stores = [found for stmt in kernel.walk() if (found := _stored(stmt)) is not None]
        self._feeds_cube = any(
            isinstance(stmt, Copy) and (stmt.src.buffer.memory, stmt.dst.buffer.memory) == (Memory.UB, Memory.L1)
            for stmt in kernel.walk()
        )

    def is_used(self, copy: Copy) -> bool:
        """True if a gemm may add such rows up, a store keep them, or a column be missing of a row that is stored."""
        load = copy.src
        used = self._feeds_cube or not _whole_columns(load) or not all(self._end_alike(s, load) for s in self._stores)
        return used and not self._is_inside(copy)

    def _is_inside(self, copy: Copy) -> bool:
        """A region that ends in its tensor, as the factory asserts what tiles divide."""
        bounds = self._known.around(copy, parents_of(self._known.kernel, copy))
        for size, tile in self._sizes:
            if isinstance(size, cst.Name):
                bounds = bounds.divided(size.value, self._known.evaluator.sym(tile, copy.env))
        return all(
            dim.is_point or (dim.extent is not None and bounds.is_not_negative(end - dim.lo - dim.extent))
            for dim, end in zip(copy.src.dims or (), copy.src.buffer.shape, strict=True)
        )

    def _end_alike(self, store: Operand, load: Operand) -> bool:
        """True if the rows of a store are those of a load, in a tensor of as many: together, or one in each turn."""
        rows = _rows(load)
        assert rows is not None
        assert load.dims is not None
        start, size = load.dims[rows].lo, load.buffer.shape[rows]
        return any(
            extent == size and (dim.lo == start or dim.lo - start in self._turns)
            for dim, extent in zip(store.dims or (), store.buffer.shape, strict=False)
        )


def _stored(stmt: object) -> Operand | None:
    """Where a statement puts a tile of the vector cores in global memory."""
    if isinstance(stmt, Copy):
        return stmt.dst if (stmt.src.buffer.memory, stmt.dst.buffer.memory) == (Memory.UB, Memory.GM) else None
    if isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
        target = stmt.args.get("dst")
        return target if isinstance(target, Operand) and target.buffer.memory is Memory.GM else None
    return None


def _whole_columns(outer: Operand) -> bool:
    assert outer.dims is not None
    return outer.dims[-1].lo.is_zero and outer.dims[-1].extent == outer.buffer.shape[-1]


def _fill(job: Job, buffer: Buffer, copy: Copy, name: str) -> str:
    pad = copy.options.get("pad_value")
    value = fills_values.literal(job, buffer, cst.Integer("0") if pad is None else pad.node)
    return f"T.tile.fill({name}, {value})"


def _with_units(buffer: Buffer, shape: cst.BaseExpression, units: int) -> cst.BaseExpression:
    first, last = (code(node) for node in buffer.shape_nodes)
    inner = ", ".join([first, *["1"] * units, last])
    return cst.parse_expression(f"[{inner}]" if isinstance(shape, cst.List) else f"({inner})")


def _view(name: str, units: int) -> str:
    return f"{name}[{', '.join([':', *['0'] * units, ':'])}]"
