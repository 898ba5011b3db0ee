"""Which axes of tiles belong together: an element of one only ever meets the element of the other at the same place."""

from __future__ import annotations

from dataclasses import dataclass

from tl2npu.tile.expr import Expr, axis_of, loads
from tl2npu.tile.ir import AtomicAdd, If, Kernel, Let, Map, Matmul, Move, Reduce, Region, statements, values

Place = tuple[str, int]
"""A tile and the number of one of its axes."""


@dataclass(frozen=True)
class Transfer:
    """A copy between a tile and a tensor, as one axis sees it: ``extent`` elements of the tile, ``tensor`` and its
    ``axis``."""

    tile: Region
    number: int
    tensor: Region
    axis: int
    stores: bool


class Axes:
    """The axes of a kernel's tiles.

    ``mixed``: axes along which elements meet others: they are reduced, or indexed in another way than element by
    element; ``summed``: the axes of two operands that a product sums; ``transfers``: copies from and to tensors.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.shapes = {tile.name: tile.shape for tile in kernel.tiles}
        self._parent = {(name, n): (name, n) for name, shape in self.shapes.items() for n in range(len(shape))}
        self.mixed: set[Place] = set()
        self.summed: list[tuple[Place, Place]] = []
        self.transfers: dict[Place, list[Transfer]] = {}
        for stmt in statements(kernel.body):
            match stmt:
                case Map():
                    self._map(stmt.dst, stmt.value)
                case Let() | If():
                    found = (item for value in values(stmt) for item in loads(value))
                    self.mixed |= {(item.buffer, n) for item in found for n in range(len(item.index))}
                case Reduce():
                    self.mixed.add((stmt.src, stmt.axis))
                    kept = [n for n in range(len(self.shapes[stmt.src])) if n != stmt.axis]
                    for number, place in enumerate(kept):
                        self._join((stmt.src, place), (stmt.dst, number))
                case Matmul():
                    self._join((stmt.a, int(stmt.transpose_a)), (stmt.c, 0))
                    self._join((stmt.b, int(not stmt.transpose_b)), (stmt.c, 1))
                    inner = (stmt.a, int(not stmt.transpose_a)), (stmt.b, int(stmt.transpose_b))
                    self._join(*inner)
                    self.summed.append(inner)
                case AtomicAdd():
                    shape = self.shapes[stmt.src]
                    self._transfer(Region(stmt.src, tuple(e - e for e in shape), shape), stmt.dst, True)
                case Move():
                    self._move(stmt)

    @property
    def places(self) -> list[Place]:
        """All axes."""
        return list(self._parent)

    def together(self, place: Place) -> set[Place]:
        """The axes that belong to this one, itself too."""
        root = self._root(place)
        return {item for item in self._parent if self._root(item) == root}

    def _root(self, place: Place) -> Place:
        while self._parent[place] != place:
            place = self._parent[place]
        return place

    def _join(self, one: Place, other: Place) -> None:
        self._parent[self._root(one)] = self._root(other)

    def _map(self, dst: str, value: Expr) -> None:
        for item in loads(value):
            for number, part in enumerate(item.index if item.buffer in self.shapes else ()):
                place = axis_of(str(part)) if part.atom is not None else None
                if place is not None:
                    self._join((item.buffer, number), (dst, place))
                elif self.shapes[item.buffer][number].constant != 1:
                    self.mixed.add((item.buffer, number))

    def _move(self, stmt: Move) -> None:
        sides = [side for side in (stmt.src, stmt.dst) if side.buffer in self.shapes]
        if len(sides) == 1:
            self._transfer(sides[0], stmt.dst if sides[0] is stmt.src else stmt.src, sides[0] is stmt.src)
            return
        places = [[(side.buffer, n) for n, extent in enumerate(side.extent) if extent is not None] for side in sides]
        for one, other in zip(*places, strict=True):
            self._join(one, other)
        for side in sides:
            whole = side.extent == self.shapes[side.buffer] and all(start.is_zero for start in side.start)
            self.mixed |= set() if whole else {(side.buffer, n) for n in range(len(side.extent))}

    def _transfer(self, tile: Region, tensor: Region, stores: bool) -> None:
        numbers = [n for n, extent in enumerate(tile.extent) if extent is not None]
        axes = [n for n, extent in enumerate(tensor.extent) if extent is not None]
        for number, place in zip(numbers, axes, strict=True):
            item = Transfer(tile, number, tensor, place, stores)
            self.transfers.setdefault((tile.buffer, number), []).append(item)
