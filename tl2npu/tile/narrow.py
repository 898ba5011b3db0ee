"""Tiles of which only the first elements along an axis are loaded and stored become that short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tl2npu.kernel.symbolic import Sym, const
from tl2npu.tile.expr import Const, axis_of, loads
from tl2npu.tile.ir import (
    AtomicAdd,
    Buffer,
    If,
    Kernel,
    Let,
    Map,
    Matmul,
    Move,
    Reduce,
    Region,
    Stmt,
    statements,
    with_bodies,
)

Place = tuple[str, int]


def with_narrow_tiles(kernel: Kernel) -> Kernel:
    """The kernel with its padded axes cut off; what still is a part of a tile goes through a tile of its own.

    An axis is padded if all that is loaded and stored along it, by every tile that shares it, are its first elements.
    It must not be reduced; if it is summed by a product, both operands are zero behind them.
    """
    axes = _Axes(kernel)
    counts = {place: count for place in axes.parent if (count := axes.count(place)) is not None}
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


@dataclass
class _Axes:
    """The axes of tiles, joined where an element of one meets the element of another at the same place.

    ``parts``: how many elements are moved along them; ``whole``: axes that stay; ``summed``: axes of two operands.
    """

    kernel: Kernel
    parent: dict[Place, Place] = field(default_factory=dict)
    parts: dict[Place, set[Sym]] = field(default_factory=dict)
    whole: set[Place] = field(default_factory=set)
    summed: list[tuple[Place, Place]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shapes = {tile.name: tile.shape for tile in self.kernel.tiles}
        self.parent = {(name, n): (name, n) for name, shape in self.shapes.items() for n in range(len(shape))}
        for stmt in statements(self.kernel.body):
            self.stmt(stmt)
        for one, other in self.summed:
            if not (self.padded(one[0]) and self.padded(other[0])):
                self.whole.add(one)

    def root(self, place: Place) -> Place:
        while self.parent[place] != place:
            place = self.parent[place]
        return place

    def join(self, one: Place, other: Place) -> None:
        self.parent[self.root(one)] = self.root(other)

    def count(self, place: Place) -> Sym | None:
        """How many elements of an axis count, if not all."""
        joined = {item for item in self.parent if self.root(item) == self.root(place)}
        found = set().union(*(self.parts.get(item, set()) for item in joined))
        return next(iter(found)) if len(found) == 1 and not joined & self.whole else None

    def padded(self, name: str) -> bool:
        """True for a tile that is only loaded in part over zeros."""
        return all(
            (isinstance(stmt, Map) and stmt.value == Const(0.0, stmt.value.dtype)) or isinstance(stmt, Move)
            for stmt in statements(self.kernel.body)
            if name in _written(stmt)
        )

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Map():
                self.map(stmt)
            case Let() | If():
                value = stmt.condition if isinstance(stmt, If) else stmt.value
                self.whole |= {(item.buffer, n) for item in loads(value) for n in range(len(item.index))}
            case Reduce():
                self.whole.add((stmt.src, stmt.axis))
                kept = [n for n in range(len(self.shapes[stmt.src])) if n != stmt.axis]
                for number, place in enumerate(kept):
                    self.join((stmt.src, place), (stmt.dst, number))
            case Matmul():
                self.join((stmt.a, int(stmt.transpose_a)), (stmt.c, 0))
                self.join((stmt.b, int(not stmt.transpose_b)), (stmt.c, 1))
                inner = (stmt.a, int(not stmt.transpose_a)), (stmt.b, int(stmt.transpose_b))
                self.join(*inner)
                self.summed.append(inner)
            case AtomicAdd():
                self.whole |= {(stmt.src, n) for n in range(len(self.shapes[stmt.src]))}
            case Move():
                for side in (stmt.src, stmt.dst):
                    self.side(side, both=stmt.src.buffer in self.shapes and stmt.dst.buffer in self.shapes)

    def map(self, stmt: Map) -> None:
        for item in loads(stmt.value):
            for number, part in enumerate(item.index if item.buffer in self.shapes else ()):
                place = axis_of(str(part)) if part.atom is not None else None
                if place is not None:
                    self.join((item.buffer, number), (stmt.dst, place))
                elif self.shapes[item.buffer][number].constant != 1:
                    self.whole.add((item.buffer, number))

    def side(self, region: Region, both: bool) -> None:
        """One side of a copy; copies between tiles are left alone."""
        for number, extent in enumerate(region.extent if region.buffer in self.shapes else ()):
            place, size = (region.buffer, number), self.shapes[region.buffer][number]
            if both or extent is None or extent == size or not region.start[number].is_zero:
                self.whole.add(place)
            else:
                self.parts.setdefault(place, set()).add(extent)


def _written(stmt: Stmt) -> Iterator[str]:
    if isinstance(stmt, (Map, Reduce)):
        yield stmt.dst
    elif isinstance(stmt, Move):
        yield stmt.dst.buffer
    elif isinstance(stmt, Matmul):
        yield stmt.c


def _staged(kernel: Kernel) -> Kernel:
    """Copies between a tensor and a part of a tile go through a tile of that size."""
    tiles = list(kernel.tiles)
    shapes = {tile.name: tile.shape for tile in tiles}
    taken = {*kernel.sizes, *kernel.buffers, *kernel.launch.names}

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
            if isinstance(stmt, Move) and stmt.dst.extent != shapes.get(stmt.dst.buffer, stmt.dst.extent):
                middle = piece(stmt.dst)
                found += [replace(stmt, dst=middle), replace(stmt, src=middle)]
            elif isinstance(stmt, Move) and stmt.src.extent != shapes.get(stmt.src.buffer, stmt.src.extent):
                middle = piece(stmt.src)
                found += [replace(stmt, dst=middle), replace(stmt, src=middle)]
            else:
                found.append(with_bodies(stmt, body))
        return tuple(found)

    new = body(kernel.body)
    return replace(kernel, tiles=tuple(tiles), body=new)
