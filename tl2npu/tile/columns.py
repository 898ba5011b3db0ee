"""Tiles of one column, as ``v[:, None]`` under a name makes them, are vectors: a row of a tile has 32 bytes or more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tl2npu.kernel.symbolic import const
from tl2npu.tile.expr import Expr, Load, axis, rebuilt, substituted
from tl2npu.tile.ir import AtomicAdd, Kernel, Map, Matmul, Move, Reduce, Region, Stmt, mapped, statements, with_values

_ONE = const(1)


def without_columns(kernel: Kernel) -> Kernel:
    """The kernel with vectors for tiles whose last axis has one element, but for those of products and atomic sums."""
    ranks = {tile.name: len(tile.shape) for tile in kernel.tiles}
    dtypes = {tile.name: tile.dtype for tile in kernel.tiles}
    names = {tile.name for tile in kernel.tiles if len(tile.shape) > 1 and tile.shape[-1] == _ONE}
    for stmt in statements(kernel.body):
        match stmt:
            case Matmul():
                names -= {stmt.a, stmt.b, stmt.c}
            case AtomicAdd():
                names -= {stmt.src}
            case Reduce():
                names -= {stmt.dst, *([stmt.src] if stmt.axis < ranks[stmt.src] - 1 else [])}
            case Move():
                for one, other in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
                    names -= {one.buffer} if other.buffer not in names and _point(other) is None else set()
    if not names:
        return kernel
    tiles = tuple(replace(tile, shape=tile.shape[:-1]) if tile.name in names else tile for tile in kernel.tiles)
    body = mapped(kernel.body, lambda stmt: _shortened(stmt, names, ranks, dtypes))
    return replace(kernel, tiles=tiles, body=body)


def _shortened(stmt: Stmt, names: Collection[str], ranks: dict[str, int], dtypes: dict[str, str]) -> Stmt:
    def part(item: Expr) -> Expr | None:
        return replace(item, index=item.index[:-1]) if isinstance(item, Load) and item.buffer in names else None

    stmt = with_values(stmt, lambda value: rebuilt(value, part))
    match stmt:
        case Map() if stmt.dst in names:
            return replace(stmt, value=substituted(stmt.value, {f"@{ranks[stmt.dst] - 1}": 0}))
        case Reduce() if stmt.src in names:
            index = tuple(axis(number) for number in range(ranks[stmt.src] - 1))
            return Map(stmt.dst, Load(stmt.src, index, dtypes[stmt.src]), stmt.origin)
        case Move():
            one, other = (region.buffer in names for region in (stmt.src, stmt.dst))
            src = _cut(stmt.src) if one else _point(stmt.src) if other else stmt.src
            dst = _cut(stmt.dst) if other else _point(stmt.dst) if one else stmt.dst
            assert src is not None
            assert dst is not None
            return replace(stmt, src=src, dst=dst)
    return stmt


def _cut(region: Region) -> Region:
    return replace(region, start=region.start[:-1], extent=region.extent[:-1])


def _point(region: Region) -> Region | None:
    """The region with a point for its last axis, if that has one element; None for any other."""
    places = [number for number, extent in enumerate(region.extent) if extent is not None]
    if not places or region.extent[places[-1]] != _ONE:
        return None
    extent = tuple(None if number == places[-1] else one for number, one in enumerate(region.extent))
    return replace(region, extent=extent)
