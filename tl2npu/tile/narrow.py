"""Tiles of which only the first elements along an axis are loaded and stored become that short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tl2npu.kernel.symbolic import Opaque, Sym, const
from tl2npu.tile.axes import Axes, Place
from tl2npu.tile.expr import Const
from tl2npu.tile.ir import Buffer, Kernel, Map, Move, Region, Stmt, statements, with_bodies, writes


def with_narrow_tiles(kernel: Kernel) -> Kernel:
    """The kernel with its padded axes cut off; what still is a part of a tile goes through a tile of its own.

    An axis is padded if all that is loaded and stored along it, by every tile that shares it, are its first elements.
    It must not be reduced; if it is summed by a product, both operands are zero behind them.
    """
    axes = Axes(kernel)
    if not all(is_static(kernel, stmt.src) for stmt in statements(kernel.body) if isinstance(stmt, Move)):
        return _staged(kernel)
    kept = {one for one, other in axes.summed if not (_padded(kernel, one[0]) and _padded(kernel, other[0]))}
    counts = {place: count for place in axes.places if (count := _count(axes, place, kept)) is not None}
    tiles = tuple(
        replace(tile, shape=tuple(counts.get((tile.name, n), extent) for n, extent in enumerate(tile.shape)))
        for tile in kernel.tiles
    )
    shapes = {tile.name: tile.shape for tile in tiles}

    def region(part: Region) -> Region:
        pairs = enumerate(part.extent)
        return replace(part, extent=tuple(counts.get((part.buffer, n), extent) for n, extent in pairs))

    def stmt(item: Stmt) -> Stmt:
        return replace(item, src=region(item.src), dst=region(item.dst)) if isinstance(item, Move) else item

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found = [with_bodies(stmt(item), body) for item in stmts]
        return tuple(item for number, item in enumerate(found) if not _overwritten(found, number, shapes))

    return _staged(replace(kernel, tiles=tiles, body=body(kernel.body)))


def _overwritten(stmts: list[Stmt], number: int, shapes: dict[str, tuple[Sym, ...]]) -> bool:
    """True for a constant that the next statement overwrites."""
    stmt, after = stmts[number], stmts[number + 1] if number + 1 < len(stmts) else None
    if not isinstance(stmt, Map) or not isinstance(stmt.value, Const) or not isinstance(after, Move):
        return False
    return after.dst.buffer == stmt.dst and after.dst.extent == shapes[stmt.dst]


def _count(axes: Axes, place: Place, kept: set[Place]) -> Sym | None:
    """How many elements of an axis count, if not all."""
    joined = axes.together(place)
    found: set[Sym | None] = set()
    for item in joined:
        for transfer in axes.transfers.get(item, ()):
            extent, size = transfer.tile.extent[transfer.number], axes.shapes[item[0]][item[1]]
            found.add(extent if extent != size and transfer.tile.start[transfer.number].is_zero else None)
    return next(iter(found)) if len(found) == 1 and not joined & (axes.mixed | kept) else None


def _padded(kernel: Kernel, name: str) -> bool:
    """True for a tile that is only loaded in part over zeros."""
    return all(
        (isinstance(stmt, Map) and isinstance(stmt.value, Const) and stmt.value.value == 0) or isinstance(stmt, Move)
        for stmt in statements(kernel.body)
        if name in writes(stmt)
    )


def _staged(kernel: Kernel) -> Kernel:
    """Copies between a tensor and a part of a tile go through a tile of that size."""
    tiles = list(kernel.tiles)
    shapes = {tile.name: tile.shape for tile in tiles}
    taken = {*kernel.sizes, *kernel.scalars, *kernel.buffers, *kernel.launch.names}

    def piece(region: Region) -> Region:
        whole = kernel.buffers[region.buffer]
        name = f"{region.buffer}_part"
        while name in taken:
            name += "_2"
        taken.add(name)
        shape = tuple(extent if extent is not None else const(1) for extent in region.extent)
        tiles.append(Buffer(name, shape, whole.dtype, whole.scope))
        return Region(name, tuple(const(0) for _ in shape), shape)

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, Move) and not is_static(kernel, stmt.src):
                found.append(stmt)
            elif isinstance(stmt, Move) and _is_short(stmt.dst, shapes):
                middle = piece(stmt.dst)
                found += [replace(stmt, dst=middle), replace(stmt, src=middle)]
            elif isinstance(stmt, Move) and _is_short(stmt.src, shapes):
                middle = piece(stmt.src)
                found += [replace(stmt, dst=middle), replace(stmt, src=middle)]
            else:
                found.append(with_bodies(stmt, body))
        return tuple(found)

    new = body(kernel.body)
    return replace(kernel, tiles=tuple(tiles), body=new)


def is_static(kernel: Kernel, region: Region) -> bool:
    """True for a region that is as long whatever turn or block it is of: a tile may have these sizes."""
    extents = [extent for extent in region.extent if extent is not None]
    sizes = {name for extent in extents for name in extent.names} <= set(kernel.sizes)
    return sizes and not any(isinstance(atom, Opaque) for extent in extents for atom in extent.atoms())


def _is_short(region: Region, shapes: Mapping[str, tuple[Sym, ...]]) -> bool:
    """True for a part of a tile that is none of its rows or elements."""
    shape = shapes.get(region.buffer, region.extent)
    return any(extent not in (None, size) for extent, size in zip(region.extent, shape, strict=True))
