"""Loops whose tiles may be dealt out to the blocks in another way: each element of a tile is computed apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tl2npu.kernel.symbolic import Sym, var
from tl2npu.tile.axes import Axes, Place
from tl2npu.tile.expr import Index, Load, walk
from tl2npu.tile.integers import in_body
from tl2npu.tile.ir import (
    AtomicAdd,
    For,
    Kernel,
    Map,
    Move,
    Region,
    Stmt,
    reads,
    statements,
    values,
    with_bodies,
    writes,
)
from tl2npu.tile.names import names_in, numbers_of
from tl2npu.tile.persistent import carries

_TILE = "~tile"


@dataclass(frozen=True)
class Spread:
    """The loop over ``var`` whose turn does tile ``block + blocks * var`` of ``step`` elements."""

    var: str
    block: str
    blocks: Sym
    step: Sym


def is_elementwise(kernel: Kernel, spread: Spread) -> bool:
    """True if a turn does nothing but compute and store each element of its tile, by its place on the axis.

    So it does not matter in which tile and in which block an element lies: tensors are read and written from the start
    of the tile on, or nothing of the tile is in the address; tiles never mix their elements along the axis; nothing
    else depends on the tile or the block; and no turn leaves anything to another one or to what follows.
    """
    loop = next((s for s in statements(kernel.body) if isinstance(s, For) and s.var == spread.var), None)
    if loop is None:
        return True
    own = set(map(id, (loop, *statements(loop.body))))
    outside = [stmt for stmt in statements(kernel.body) if id(stmt) not in own]
    place = {spread.block: var(_TILE) - spread.blocks * var(spread.var)}
    body = in_body(loop.body, lambda value: value.substitute(place))
    if names_in(body) & {spread.var, spread.block}:
        return False
    if any(spread.block in number.names for stmt in outside for number in numbers_of(stmt)):
        return False
    inside = list(statements(body))
    params = {param.name for param in kernel.params}
    written = {name for stmt in inside for name in writes(stmt)}
    touched = {name for stmt in outside for name in (*reads(stmt), *(writes(stmt) & params))}
    if written & touched or carries(kernel, loop.body) or any(isinstance(stmt, AtomicAdd) for stmt in inside):
        return False

    def with_tile(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(replace(loop, body=body) if stmt is loop else with_bodies(stmt, with_tile) for stmt in stmts)

    return _Lanes(replace(kernel, body=with_tile(kernel.body)), spread.step, written & params).are_apart()


class _Lanes:
    """The axes of tiles along which the elements of a turn lie. ``written``: tensors that the turn writes."""

    def __init__(self, kernel: Kernel, step: Sym, written: set[str]) -> None:
        self.kernel, self.step, self.written = kernel, step, written
        self.params = {param.name for param in kernel.params}
        self.axes = Axes(kernel)
        self.axis: dict[str, int] = {}
        self.places: set[Place] = set()

    def are_apart(self) -> bool:
        moves = [stmt for stmt in statements(self.kernel.body) if isinstance(stmt, Move)]
        if not all(self.is_along(tensor, tile) for s in moves for tensor, tile in ((s.src, s.dst), (s.dst, s.src))):
            return False
        summed = {place for pair in self.axes.summed for place in pair}
        if self.places & (self.axes.mixed | summed):
            return False
        ends = [item for place in self.places for item in self.axes.transfers.get(place, ())]
        return all(self.starts(item.tensor, item.axis) for item in ends) and all(
            self.is_alike(stmt) for stmt in statements(self.kernel.body)
        )

    def starts(self, tensor: Region, axis: int) -> bool:
        """True if a region begins where the tile does, and is as long."""
        return tensor.start[axis] == self.step * var(_TILE) and tensor.extent[axis] == self.step

    def is_along(self, region: Region, other: Region) -> bool:
        """Note the lanes of a copy; False for one that has the tile elsewhere in its address."""
        lanes = [n for n, start in enumerate(region.start) if _TILE in start.names]
        if region.buffer not in self.params:
            return not lanes
        if region.buffer in self.written and [self.axis.setdefault(region.buffer, n) for n in lanes[:1]] != lanes:
            return False
        axes = [n for n, extent in enumerate(region.extent) if extent is not None]
        numbers = [n for n, extent in enumerate(other.extent) if extent is not None]
        for number, axis in zip(numbers, axes, strict=True):
            if axis in lanes:
                self.places |= self.axes.together((other.buffer, number))
        return len(lanes) < 2 and all(self.starts(region, axis) for axis in lanes)

    def is_alike(self, stmt: Stmt) -> bool:
        """True if the integers of a statement name lane and tile only together, as an element's place on the axis."""
        if isinstance(stmt, Move):
            return True
        lanes = {n for name, n in self.places if isinstance(stmt, Map) and name == stmt.dst}
        lane = {f"@{n}": var("~place") - self.step * var(_TILE) for n in lanes}
        for item in (item for value in values(stmt) for item in walk(value)):
            if isinstance(item, Index) and _TILE in item.value.substitute(lane).names:
                return False
            if isinstance(item, Load) and any(_TILE in part.names for part in item.index):
                return False
        return not isinstance(stmt, For) or _TILE not in stmt.count.names
