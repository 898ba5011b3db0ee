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

import itertools
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.assertions import divisions
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.memory.roles import sites
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Memory, Op, Operand, walk
from tl2npu.kernel.ranges.known import Known
from tl2npu.kernel.ranges.reach import parents_of
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.memory import allocations
from tl2npu.passes.job import Job
from tl2npu.passes.writing import numbers as fills_values
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, replaced

_WHY = "# TL155: an axis of 1 more, as in its tensor, so that `threads=2` splits the rows and no other axis"


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
    found = _tiles(job)
    if not found:
        return False
    edits = Edits(job.file.index)
    names = Names(job)
    own = {buffer: tile for buffer, tile in found.items() if tile.pure}
    behind = _Behind(job)
    why = f"{_WHY}\n"
    for buffer in (one for one in kernel.buffers.values() if one in found):
        tile = found[buffer]
        assert isinstance(buffer.node, cst.Call)
        if tile.pure:
            shape = argument(buffer.node, "shape", 0)
            if shape is None:
                return False
            if why and buffer.statement is not None:
                whole = replaced(buffer.node, {id(shape): _with_units(buffer, shape, tile.units)})
                edits.replace_many(
                    buffer.statement, parse(job, f"{why}{buffer.name} = {code(whole)}", buffer.statement)
                )
            else:
                edits.replace(shape, _with_units(buffer, shape, tile.units))
            job.change("TL155", buffer.node, f"gave `{buffer.name}` the axes of its tensor")
            for copy in tile.copies:
                if copy.dst.buffer is buffer and copy.dst.is_whole and behind.is_used(copy):
                    edits.replace_many(
                        copy.node, [*parse(job, _fill(job, buffer, copy, buffer.name), copy.node), copy.node]
                    )
        elif not _land(job, edits, buffer, tile, names.fresh(f"{buffer.name}_rows"), behind, why):
            return False
        why = ""
    for stmt in kernel.walk():
        if not isinstance(stmt, Copy):
            continue
        units = [own[o.buffer].units if o.buffer in own else 0 for o in (stmt.src, stmt.dst)]
        for operand in (stmt.src, stmt.dst):
            if operand.buffer in own and not operand.is_whole and operand.dims is not None:
                text = _row(operand.buffer.name, operand, own[operand.buffer].units)
                edits.replace(operand.node, cst.parse_expression(text))
        if Memory.GM in (stmt.src.buffer.memory, stmt.dst.buffer.memory) or units[0] == units[1]:
            continue
        for operand in (stmt.src, stmt.dst):
            if operand.buffer in own and operand.is_whole:
                edits.replace(operand.node, cst.parse_expression(_view(operand.buffer.name, own[operand.buffer].units)))
    job.apply(edits)
    allocations.finish(job)
    return True


def _tiles(job: Job) -> dict[Buffer, _Tile]:
    kernel, found, sizes = job.kernel, dict[Buffer, _Tile](), _Sizes(job)
    for stmt in kernel.walk():
        if not isinstance(stmt, Copy):
            continue
        for inner, outer in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
            units = _units(inner, outer, sizes)
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


class _Sizes:
    """What the known calls of the factory make of sizes."""

    def __init__(self, job: Job) -> None:
        self._calls = [caller.values for caller in callers_of(job.file, job.located, shapes=True)]

    def are_same(self, size: Sym | None, other: Sym) -> bool:
        """Equal for all sizes, or in all known calls."""
        if size is None or size == other:
            return size is not None
        gaps = [(size - other).evaluate(values) for values in self._calls]
        return any(gap is not None for gap in gaps) and not any(gaps)


def _units(inner: Operand, outer: Operand, sizes: _Sizes) -> int:
    """How many axes of length 1 the tensor has between the rows and the columns of a whole tile."""
    tile, dims = inner.buffer, outer.dims
    if tile.memory is not Memory.UB or outer.buffer.memory is not Memory.GM:
        return 0
    if not inner.is_whole:
        return _units_of_row(inner, outer)
    if len(tile.shape) != 2 or dims is None or len(dims) != len(outer.buffer.shape) or dims[-1].is_point:
        return 0
    rows = _rows(outer)
    if (
        rows is None
        or any(not dim.is_point for dim in dims[:rows])
        or not sizes.are_same(dims[rows].extent, tile.shape[0])
    ):
        return 0
    return len(dims) - 2 - rows


def _units_of_row(inner: Operand, outer: Operand) -> int:
    """The same for one row of a tile, ``x[i, :]``, and the place of a tensor that moves with ``i``."""
    mine, dims = inner.dims, outer.dims
    if mine is None or not _is_row(inner) or dims is None or len(dims) != len(outer.buffer.shape):
        return 0
    (row,) = mine[0].lo.variables() if len(mine[0].lo.variables()) == 1 else ("",)
    moving = [axis for axis, dim in enumerate(dims) if row and dim.lo.depends_on(row)]
    if len(moving) != 1 or dims[-1].is_point or any(not dim.is_point for dim in dims[:-1]):
        return 0
    return len(dims) - 2 - moving[0]


def _is_row(inner: Operand) -> bool:
    """``x[i, :]`` of a tile of two axes."""
    row, columns = inner.dims if inner.dims is not None and len(inner.dims) == 2 else (None, None)
    if row is None or columns is None or not row.is_point or columns.is_point:
        return False
    return columns.lo.is_zero and columns.extent == inner.buffer.shape[1]


def _rows(outer: Operand) -> int | None:
    """The axis of the rows: the last one but the columns along which there is more than a point."""
    dims = outer.dims or ()
    return next((axis for axis in reversed(range(len(dims) - 1)) if not dims[axis].is_point), None)


def _only_copied(stmt: object, operand: Operand, tile: _Tile) -> bool:
    if isinstance(stmt, Op):
        return stmt.op.kind is Kind.FILL and operand.is_whole
    if not isinstance(stmt, Copy):
        return False
    other = stmt.dst if operand is stmt.src else stmt.src
    if not operand.is_whole:
        return stmt in tile.copies or (other.buffer.memory is Memory.UB and _is_row(operand) and _is_row(other))
    if other.buffer.memory is Memory.GM:
        return stmt in tile.copies
    return other.buffer.memory is Memory.UB and other.is_whole


def _land(job: Job, edits: Edits, buffer: Buffer, tile: _Tile, name: str, behind: _Behind, why: str) -> bool:
    """A second tile for the copies with global memory; the tile that computes stays as it is."""
    assert isinstance(buffer.node, cst.Call)
    shape = argument(buffer.node, "shape", 0)
    if shape is None or buffer.statement is None:
        return False
    call = replaced(buffer.node, {id(shape): _with_units(buffer, shape, tile.units)})
    made = parse(job, f"{why}{name} = {code(call)}", buffer.statement)
    edits.replace_many(buffer.statement, [buffer.statement, *made])
    loops: dict[Loop, bool] = {}
    for copy in tile.copies:
        loads = copy.dst.buffer is buffer
        own = copy.dst if loads else copy.src
        view = _view(name, tile.units) if own.is_whole else _row(name, own, tile.units)
        outside = name if own.is_whole else view
        moved = replaced(copy.node, {id(own.node): cst.parse_expression(outside)})
        if (loop := _row_loop(job.kernel, copy, own, tile)) is not None:
            loops[loop] = loops.get(loop, False) or loads
            edits.replace(copy.node, moved)
            continue
        extra = parse(job, _copied(code(own.node), view, loads), copy.node)
        before = []
        if loads and own.is_whole and behind.is_used(copy):
            before = parse(job, _fill(job, buffer, copy, name), copy.node)
        edits.replace_many(copy.node, [*before, moved, *extra] if loads else [*extra, moved])
    for loop, loads in loops.items():
        into, out = (_copied(buffer.name, _view(name, tile.units), back) for back in (False, True))
        fill = _filled_before(job.kernel, loop, buffer) if loads else None
        if fill is not None:
            edits.replace(fill.node, cst.Name(name))
        fresh = fill is not None or (loads and _is_first(job.kernel, loop, buffer))
        before, after = ([] if fresh else parse(job, into, loop.node)), (parse(job, out, loop.node) if loads else [])
        edits.replace_many(loop.node, [*before, loop.node, *after])
    job.change("TL155", buffer.node, f"`{name}`, with the axes of the tensor, stands between it and `{buffer.name}`")
    return True


def _copied(tile: str, view: str, back: bool) -> str:
    return f"T.copy({view}, {tile})" if back else f"T.copy({tile}, {view})"


def _row_loop(kernel: Kernel, copy: Copy, own: Operand, tile: _Tile) -> Loop | None:
    """The loop over the rows of which a copy takes one, if it does nothing else with the tile."""
    if own.is_whole or own.dims is None:
        return None
    row = own.dims[0].lo
    for loop in parents_of(kernel, copy):
        if isinstance(loop, Loop) and any(row.depends_on(str(item.var)) for item in loop.ranges):
            inside = [stmt for stmt in walk([loop]) for a in accesses(stmt) if a.operand.buffer is own.buffer]
            return loop if all(stmt in tile.copies for stmt in inside) else None
    return None


def _filled_before(kernel: Kernel, loop: Loop, buffer: Buffer) -> Operand | None:
    """The tile in the fill that stands right in front of a loop."""
    site = sites(kernel)[id(loop)]
    stmt = site.body[site.position - 1] if site.position else None
    filled = [a.operand for a in accesses(stmt)] if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL else []
    return filled[0] if len(filled) == 1 and filled[0].buffer is buffer and filled[0].is_whole else None


def _is_first(kernel: Kernel, loop: Loop, buffer: Buffer) -> bool:
    """Nothing has put a value in the tile when the loop begins."""
    before = itertools.takewhile(lambda stmt: stmt is not loop, kernel.walk())
    used = any(access.operand.buffer is buffer for stmt in before for access in accesses(stmt))
    return not used and not any(isinstance(stmt, Loop) for stmt in parents_of(kernel, loop))


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


def _row(name: str, operand: Operand, units: int) -> str:
    assert operand.dims is not None
    return f"{name}[{code(operand.dims[0].node)}{', 0' * units}, :]"


def _view(name: str, units: int) -> str:
    return f"{name}[{', '.join([':', *['0'] * units, ':'])}]"
