"""Tiles that are used transposed beside others are stored transposed: element-wise code and copies cannot transpose."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.tile.expr import Expr, Load, axis, axis_of, loads, rebuilt, substituted
from tl2npu.tile.ir import AtomicAdd, Kernel, Map, Matmul, Move, Reduce, Stmt, mapped, statements, with_values

_TURNED = {"@0": axis(1), "@1": axis(0)}


class Crossed(Exception):
    """A tile would have to be stored both ways; ``line`` of the statement, ``tile``: its name."""

    def __init__(self, line: int, tile: str) -> None:
        super().__init__(tile)
        self.line, self.tile = line, tile


def with_straight_tiles(kernel: Kernel) -> Kernel:
    """The kernel with matrices stored so that element-wise code meets all of them along the same axes.

    Products give and take matrices either way, and reductions either axis; copies from and to tensors keep theirs.
    Raises :class:`Crossed`.
    """
    turned = _turned(kernel)
    if not any(turned.values()):
        return kernel
    names = {name for name, is_turned in turned.items() if is_turned}
    tiles = tuple(
        replace(tile, shape=(tile.shape[1], tile.shape[0])) if tile.name in names else tile for tile in kernel.tiles
    )
    return replace(kernel, tiles=tiles, body=mapped(kernel.body, lambda stmt: _stored(stmt, names)))


def _turned(kernel: Kernel) -> dict[str, bool]:
    """Whether each matrix is stored transposed."""
    matrices = {tile.name for tile in kernel.tiles if len(tile.shape) == 2}
    edges: dict[str, list[tuple[str, bool, int]]] = {name: [] for name in matrices}
    fixed: dict[str, bool] = {}
    for stmt in statements(kernel.body):
        match stmt:
            case Map() if stmt.dst in matrices:
                for item in loads(stmt.value):
                    across = _across(item, stmt.origin.line) if item.buffer in matrices else None
                    if across is not None:
                        edges[stmt.dst].append((item.buffer, across, stmt.origin.line))
                        edges[item.buffer].append((stmt.dst, across, stmt.origin.line))
            case Move():
                fixed |= {side.buffer: False for side in (stmt.src, stmt.dst) if side.buffer in matrices}
            case AtomicAdd() if stmt.src in matrices:
                fixed[stmt.src] = False
    found: dict[str, bool] = {}
    for start in (*fixed, *sorted(matrices)):
        waiting = [] if start in found else [start]
        found.setdefault(start, False)
        while waiting:
            name = waiting.pop()
            for other, across, line in edges[name]:
                way = found[name] ^ across
                if found.get(other, way) != way or fixed.get(other, way) != way:
                    raise Crossed(line, other)
                waiting += [] if other in found else [other]
                found[other] = way
    return found


def _across(item: Load, line: int) -> bool | None:
    """True for a matrix that is read transposed, None for one row or column of it."""
    places = [axis_of(str(part)) if part.atom is not None else None for part in item.index]
    if places[0] is not None and places[0] == places[1]:
        raise Crossed(line, item.buffer)  # its diagonal
    return None if None in places else places == [1, 0]


def _stored(stmt: Stmt, turned: set[str]) -> Stmt:
    if isinstance(stmt, Map) and stmt.dst in turned:
        stmt = replace(stmt, value=substituted(stmt.value, _TURNED))
    match stmt:
        case Reduce() if stmt.src in turned:
            return replace(stmt, axis=1 - stmt.axis)
        case Matmul():
            a, b = stmt.transpose_a ^ (stmt.a in turned), stmt.transpose_b ^ (stmt.b in turned)
            if stmt.c in turned:
                return replace(stmt, a=stmt.b, b=stmt.a, transpose_a=not b, transpose_b=not a)
            return replace(stmt, transpose_a=a, transpose_b=b)

    def read(item: Expr) -> Expr | None:
        return replace(item, index=item.index[::-1]) if isinstance(item, Load) and item.buffer in turned else None

    return with_values(stmt, lambda value: rebuilt(value, read))
