"""Vectors that are summed to one element get a leading axis of one row, and single elements become rows of one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tl2npu.kernel.symbolic import Sym, const
from tl2npu.tile.expr import (
    COMPARISONS,
    LOGIC,
    Call,
    Expr,
    Load,
    Opaque,
    axis,
    loads,
    rebuilt,
    substituted,
    walk,
    with_leading_index,
)
from tl2npu.tile.ir import (
    If,
    Kernel,
    Let,
    Map,
    Move,
    Reduce,
    Region,
    Stmt,
    mapped,
    reads,
    statements,
    with_bodies,
    with_values,
    writes,
)

_DTYPE = "float32"
"""The compiler cannot use other scalars of global memory in operators of this type."""


def with_scalars(kernel: Kernel) -> Kernel:
    """The kernel with names for loaded elements in the place of tiles of no axis, where nothing else needs the tile."""
    singles = {tile.name for tile in kernel.tiles if not tile.shape and tile.dtype == _DTYPE}
    alone = singles - {
        name
        for stmt in statements(kernel.body)
        for name in (*(writes(stmt) if not isinstance(stmt, Move) else ()), *_whole(stmt))
    }
    writing = Counter(name for stmt in statements(kernel.body) for name in writes(stmt))
    alone -= {name for name, count in writing.items() if count > 1}
    found: set[str] = set()

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        new: list[Stmt] = []
        for number, stmt in enumerate(stmts):
            name = stmt.dst.buffer if isinstance(stmt, Move) else ""
            behind = sum(_uses(item, name) for item in statements(stmts[number + 1 :])) if name in alone else 0
            every = sum(_uses(item, name) for item in statements(kernel.body)) if name in alone else 0
            if behind == every - 1 and isinstance(stmt, Move) and stmt.inside and stmt.src.buffer not in writing:
                found.add(name)
                new.append(Let(name, Load(stmt.src.buffer, stmt.src.start, _DTYPE), stmt.origin))
            else:
                new.append(with_bodies(stmt, body))
        return tuple(new)

    new = body(kernel.body)

    def named(item: Expr) -> Expr | None:
        return Opaque(item.buffer, _DTYPE) if isinstance(item, Load) and item.buffer in found else None

    new = mapped(new, lambda stmt: with_values(stmt, lambda value: rebuilt(value, named)))
    return replace(kernel, body=new, tiles=tuple(tile for tile in kernel.tiles if tile.name not in found))


def _uses(stmt: Stmt, name: str) -> int:
    return (name in reads(stmt)) + (name in writes(stmt))


def _whole(stmt: Stmt) -> frozenset[str]:
    """The tiles that a statement needs as tiles."""
    return frozenset() if isinstance(stmt, (Map, Let)) else reads(stmt)


_LANES = 8
"""Elements of a vector that stands for a single value: a loop of one turn would not be computed by vector functions."""
_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg", "cast", "max", "min", "select"}) | COMPARISONS | LOGIC


class _NoRow(Exception):
    """A vector is summed and is a row or column of a matrix, too."""


def with_unit_axes(kernel: Kernel) -> Kernel:
    """The kernel without tiles of no axis: they are scalars or vectors of one element, and what is reduced a matrix.

    A vector that would have to be both is reduced as a copy.
    """
    kernel = _with_lanes(with_scalars(kernel))
    shapes = {tile.name: tile.shape for tile in kernel.tiles}
    singles = {name for name, shape in shapes.items() if not shape}
    if not singles:
        return kernel
    try:
        rows = _rows(kernel, shapes)
    except _NoRow:
        kernel = _with_own_rows(kernel, shapes)
        shapes = {tile.name: tile.shape for tile in kernel.tiles}
        rows = _rows(kernel, shapes)
    tiles = tuple(
        replace(tile, shape=(const(1), *tile.shape)) if tile.name in singles | rows else tile for tile in kernel.tiles
    )
    return replace(kernel, tiles=tiles, body=mapped(kernel.body, lambda stmt: _lifted(stmt, singles, rows)))


def _with_lanes(kernel: Kernel) -> Kernel:
    """Single values that functions such as exp give, and nothing loads, stores or reduces, become vectors of it."""
    maps = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Map)]
    copied = [stmt for stmt in statements(kernel.body) if not isinstance(stmt, (Map, Let, If))]
    others = {name for stmt in copied for name in (*reads(stmt), *writes(stmt))}
    singles = {tile.name for tile in kernel.tiles if not tile.shape} - others
    made = {m.dst for m in maps for item in walk(m.value) if isinstance(item, Call) and item.op not in _ARITHMETIC}
    wide = singles & made
    if not wide:
        return kernel

    def change(stmt: Stmt) -> Stmt:
        place = axis(0) if isinstance(stmt, Map) and stmt.dst in wide else const(0)

        def indexed(item: Expr) -> Expr | None:
            return replace(item, index=(place,)) if isinstance(item, Load) and item.buffer in wide else None

        return with_values(stmt, lambda value: rebuilt(value, indexed))

    tiles = tuple(replace(tile, shape=(const(_LANES),)) if tile.name in wide else tile for tile in kernel.tiles)
    return replace(kernel, tiles=tiles, body=mapped(kernel.body, change))


def _with_own_rows(kernel: Kernel, shapes: dict[str, tuple[Sym, ...]]) -> Kernel:
    """Vectors that are reduced to one element are copied to a matrix of one row for that: they may be columns, too."""
    tiles = list(kernel.tiles)
    taken = {*kernel.sizes, *kernel.scalars, *kernel.buffers, *kernel.launch.names}

    def own(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Reduce) or shapes.get(stmt.dst) != () or len(shapes[stmt.src]) != 1:
            return (with_bodies(stmt, body),)
        name = f"{stmt.src}_row"
        while name in taken:
            name += "_2"
        taken.add(name)
        like = kernel.buffers[stmt.src]
        tiles.append(replace(like, name=name, shape=(const(1), *like.shape), scope="fragment"))
        return Map(name, Load(stmt.src, (axis(1),), like.dtype), stmt.origin), replace(stmt, src=name, axis=1)

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in stmts for new in own(stmt))

    new = body(kernel.body)
    return replace(kernel, tiles=tuple(tiles), body=new)


def _rows(kernel: Kernel, shapes: dict[str, tuple[Sym, ...]]) -> set[str]:
    """The vectors that are one row of a matrix: those reduced to one element, and those computed with them."""
    single = (stmt for stmt in statements(kernel.body) if isinstance(stmt, Reduce) and not shapes.get(stmt.dst, (1,)))
    rows = {stmt.src for stmt in single if len(shapes[stmt.src]) == 1}
    if not any(len(shape) == 2 for shape in shapes.values()):
        return {name for name, shape in shapes.items() if len(shape) == 1}
    before = -1
    while len(rows) != before:
        before = len(rows)
        for stmt in statements(kernel.body):
            if isinstance(stmt, Map):
                names = {stmt.dst, *(item.buffer for item in loads(stmt.value))}
                if names & rows:
                    vectors = {name for name in names if len(shapes.get(name, ())) == 1}
                    if any(len(shapes.get(name, ())) == 2 for name in names):
                        raise _NoRow
                    rows |= vectors
            elif isinstance(stmt, Reduce) and stmt.dst in rows:
                raise _NoRow
    return rows


def _lifted(stmt: Stmt, singles: set[str], rows: set[str]) -> Stmt:
    lifted, place = singles | rows, const(0)
    match stmt:
        case Map() if stmt.dst in lifted:
            place = axis(0)
            if stmt.dst in rows:
                stmt = replace(stmt, value=substituted(stmt.value, {"@0": axis(1)}))
        case Reduce() if stmt.src in rows:
            return replace(stmt, axis=stmt.axis + 1)
        case Move():
            return replace(stmt, src=_region(stmt.src, lifted), dst=_region(stmt.dst, lifted))
    return with_values(stmt, lambda value: with_leading_index(value, lifted, place))


def _region(region: Region, lifted: set[str]) -> Region:
    """A region of a lifted tile is a point along the new axis, so that copies keep their shape."""
    if region.buffer not in lifted:
        return region
    return replace(region, start=(const(0), *region.start), extent=(None, *region.extent))
