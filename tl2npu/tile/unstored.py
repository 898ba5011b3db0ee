"""Elements of tiles that no tensor gets: those that lie behind the end of the axis to which they are stored."""

from __future__ import annotations

from dataclasses import dataclass

from tl2npu.kernel.symbolic import Sym
from tl2npu.tile.axes import Axes
from tl2npu.tile.ir import For, Kernel, Let, statements


@dataclass(frozen=True)
class Beyond:
    """The elements of a tile's axis whose place, counted from ``start``, is ``end`` or more."""

    tile: str
    axis: int
    start: Sym
    end: Sym


def is_unstored(kernel: Kernel, beyond: Beyond, axes: Axes) -> bool:
    """True if these elements, and what is computed from them, meet no others and are cut off by every store.

    A store cuts them off that begins at the same place of an axis that ends there. The place must not change in loops,
    where elements of several turns come together.
    """
    if beyond.tile not in axes.shapes:
        return True
    turns = {stmt.var for stmt in statements(kernel.body) if isinstance(stmt, For)}
    loops = [stmt for stmt in statements(kernel.body) if isinstance(stmt, For)]
    turns |= {stmt.name for loop in loops for stmt in statements(loop.body) if isinstance(stmt, Let)}
    joined = axes.together((beyond.tile, beyond.axis))
    summed = {place for pair in axes.summed for place in pair}
    if beyond.start.names & turns or joined & (axes.mixed | summed):
        return False
    stores = [item for place in joined for item in axes.transfers.get(place, ()) if item.stores]
    return all(
        item.tensor.start[item.axis] == beyond.start
        and item.tile.start[item.number].is_zero
        and kernel.buffers[item.tensor.buffer].shape[item.axis] == beyond.end
        for item in stores
    )
