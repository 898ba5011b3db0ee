"""TL446: ``[M, 1]`` tiles, which this language keeps for values of rows, become ``[M]``.

A reduction along the columns leaves ``[M, 1]``, one along the rows ``[1, N]``: the reduced axis goes. The rest of the
way, and the memory of Ascend C, want one value beside the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Memory, Op, Opaque, Operand, Scalar
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.to_gpu_like.regions import base
from tl2npu.passes.npuir.to_gpu_like.sizes import long
from tl2npu.passes.writing.statements import listed_like
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument

_CUBE = (Kind.GEMM, Kind.MMA)


@dataclass(frozen=True, eq=False)
class _Tile:
    """A tile with the axis that goes."""

    buffer: Buffer
    axis: int


def flatten(job: Job) -> None:
    """Give every tile of row values one axis less."""
    tiles = wanted = _tiles(job.kernel)
    while True:  # a tile that stays may keep others
        kept = {buffer: tile for buffer, tile in tiles.items() if _can_go(job, tile, tiles)}
        if len(kept) == len(tiles):
            break
        tiles = kept
    for buffer, tile in wanted.items():
        if buffer not in tiles and tile.axis == len(buffer.shape) - 1:
            text = f"`{buffer.name}` has one element per row, but one of its uses needs both axes"
            raise Blocked("TL442", buffer.node, text)
    if not tiles:
        return
    edits = Edits(job.file.index)
    seen: set[int] = set()
    for operand in _operands(job.kernel):
        if operand.buffer in tiles and id(operand.node) not in seen and operand.dims is not None:
            seen.add(id(operand.node))
            edits.replace(operand.node, _without(operand, tiles[operand.buffer].axis))
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy):
            _outer_side(edits, stmt, tiles)
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE:
            _dim(edits, stmt, tiles)
    for tile in tiles.values():
        shape = _shape(tile.buffer)
        assert shape is not None
        sizes = [code(element.value) for axis, element in enumerate(shape.elements) if axis != tile.axis]
        edits.replace(shape, listed_like(sizes, shape))
        job.change("TL446", tile.buffer.node, f"removed the unit axis of `{tile.buffer.name}`")
    job.apply(edits)


def _tiles(kernel: Kernel) -> dict[Buffer, _Tile]:
    found: dict[Buffer, _Tile] = {}
    columns = {_reduced_rows(stmt) for stmt in kernel.walk()}
    for buffer in kernel.buffers.values():
        if not buffer.is_tile or len(buffer.shape) < 2 or _shape(buffer) is None:
            continue
        if buffer.shape[-1].constant == 1:
            found[buffer] = _Tile(buffer, len(buffer.shape) - 1)
        elif buffer in columns and buffer.shape[0].constant == 1 and len(buffer.shape) == 2:
            found[buffer] = _Tile(buffer, 0)
    return found


def _reduced_rows(stmt: object) -> Buffer | None:
    """The result of a reduction along the first axis."""
    if not isinstance(stmt, Op) or stmt.op.kind is not Kind.REDUCE:
        return None
    dim, out = stmt.args.get("dim"), stmt.args.get("out")
    rows = isinstance(dim, Scalar) and (dim.sym.constant in (0, -2))
    return out.buffer if rows and isinstance(out, Operand) else None


def _shape(buffer: Buffer) -> cst.Tuple | cst.List | None:
    if not isinstance(buffer.node, cst.Call):
        return None
    shape = argument(buffer.node, "shape", 0)
    return shape if isinstance(shape, (cst.Tuple, cst.List)) else None


def _can_go(job: Job, tile: _Tile, tiles: dict[Buffer, _Tile]) -> bool:
    """Every use names the axis plainly, or takes the whole tile where its rank does not matter."""
    buffer = tile.buffer
    if sum(other.name == buffer.name for other in job.kernel.buffers.values()) > 1:
        return False
    ones = {
        item.var for s in job.kernel.walk() if isinstance(s, Loop) for item in s.ranges if item.extent.constant == 1
    }
    for stmt in job.kernel.walk():
        for operand in _of(stmt):
            if operand.buffer is not buffer:
                continue
            if isinstance(stmt, Opaque) or (isinstance(stmt, Op) and stmt.op.kind in _CUBE):
                return False
            if operand.dims is not None and not _plain(operand, tile.axis, ones):
                return False
            if isinstance(stmt, Copy) and not _copied(stmt, operand, tile, tiles):
                return False
    return True


def _plain(operand: Operand, axis: int, ones: set[Sym]) -> bool:
    assert operand.dims is not None
    if len(operand.dims) != len(operand.buffer.shape) or not isinstance(operand.node, cst.Subscript):
        return False
    dim = operand.dims[axis]
    if dim.is_point:
        return dim.lo.is_zero or dim.lo in ones
    return dim.lo.is_zero and dim.extent is not None and dim.extent.constant == 1


def _copied(stmt: Copy, operand: Operand, tile: _Tile, tiles: dict[Buffer, _Tile]) -> bool:
    """The other side loses the axis as well, or has as many elements in the axes that are left."""
    other = stmt.dst if operand is stmt.src else stmt.src
    if other.buffer in tiles:
        return tiles[other.buffer].axis == tile.axis or len(other.buffer.shape) == 2
    if operand.dims is not None and operand.dims[tile.axis].is_point:
        return True
    left = [size for axis, size in enumerate(operand.buffer.shape) if axis != tile.axis]
    if operand.dims is not None:
        left = [dim.extent for axis, dim in enumerate(operand.dims) if axis != tile.axis and dim.extent is not None]
    if other.is_indexed:
        return operand.dims is None and tile.axis == len(tile.buffer.shape) - 1
    sizes = other.buffer.shape if other.dims is None else [dim.extent for dim in other.dims if dim.extent is not None]
    return long(sizes) == long(left)


def _outer_side(edits: Edits, stmt: Copy, tiles: dict[Buffer, _Tile]) -> None:
    """``T.copy(m, Out[a, 0])``: what the start index leaves to the tile is said, as the tile has an axis less."""
    for inner, outer in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
        tile = tiles.get(inner.buffer)
        if tile is None or outer.buffer in tiles:
            continue
        if (
            outer.dims is None
            and outer.buffer.memory is Memory.GM
            and len(outer.buffer.shape) == len(tile.buffer.shape)
        ):
            indices = ["0" if axis == tile.axis else ":" for axis in range(len(outer.buffer.shape))]
            edits.replace(outer.node, cst.parse_expression(f"{base(outer)}[{', '.join(indices)}]"))
            continue
        if outer.dims is None or not isinstance(outer.node, cst.Subscript):
            continue
        if tile.axis != len(tile.buffer.shape) - 1 or len(outer.dims) < len(tile.buffer.shape):
            continue
        if inner.dims is not None and inner.dims[tile.axis].is_point:
            continue
        texts = [code(element.slice) for element in outer.node.slice]
        last = outer.dims[-1]
        if last.extent is not None and last.extent.constant != 1:
            continue  # a column that is copied as a row
        if isinstance(last.node, cst.Slice):
            texts[-1] = code(last.node.lower) if last.node.lower is not None else "0"
        if all(dim.is_point for dim in outer.dims) and inner.dims is None:
            shape = _shape(tile.buffer)
            assert shape is not None
            sizes = [code(element.value) for element in shape.elements][:-1]
            for place, size in enumerate(reversed(sizes)):
                start = texts[-2 - place]
                texts[-2 - place] = f"{start} : {start} + {size}" if start != "0" else f"0:{size}"
        new = f"{base(outer)}[{', '.join(texts)}]"
        if new != code(outer.node):
            edits.replace(outer.node, cst.parse_expression(new))


def _dim(edits: Edits, stmt: Op, tiles: dict[Buffer, _Tile]) -> None:
    """``dim`` counts the axes of the source, which may lose one."""
    dim, source = stmt.args.get("dim"), stmt.args.get("buffer")
    if (
        isinstance(source, Operand)
        and source.buffer in tiles
        and isinstance(dim, Scalar)
        and dim.sym.constant is not None
    ):
        axis = dim.sym.constant % len(source.buffer.shape)
        if axis > tiles[source.buffer].axis:
            edits.replace(dim.node, cst.Integer(str(axis - 1)))


def _without(operand: Operand, axis: int) -> cst.BaseExpression:
    assert isinstance(operand.node, cst.Subscript)
    assert operand.dims is not None
    kept = [code(element.slice) for i, element in enumerate(operand.node.slice) if i != axis]
    whole = all(
        dim.covers(size)
        for i, (dim, size) in enumerate(zip(operand.dims, operand.buffer.shape, strict=True))
        if i != axis
    )
    return cst.parse_expression(base(operand) if whole else f"{base(operand)}[{', '.join(kept)}]")


def _operands(kernel: Kernel) -> Iterator[Operand]:
    for stmt in kernel.walk():
        yield from _of(stmt)


def _of(stmt: object) -> Iterator[Operand]:
    for access in accesses(stmt):  # type: ignore[arg-type]
        yield access.operand
