"""TL169: one axis of a tensor that is not its last: elements that lie a row apart.

A copy of such a region would take rows of one element for the rows of the tile, so each element is moved by itself:
read by the scalar unit, or stored from a row of its own, since a store begins at a multiple of 32 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Operand
from tl2npu.kernel.regions import Region
from tl2npu.kernel.regions import extent_text as range_text
from tl2npu.kernel.symbolic import const
from tl2npu.passes.gpu.element_copies.columns import size_text
from tl2npu.passes.gpu.element_copies.guards import all_of
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import BITS, element_type
from tl2npu.passes.writing.statements import Names

_BLOCK_BITS = 256
_NARROWEST = 16
_WITHOUT_FILL = 8
"""Tiles of elements of so many bits cannot be filled (TL710)."""


@dataclass(frozen=True)
class Column:
    """``tensor[..., start + i, ...]`` for ``i < extent``; ``index`` has the other axes, "" for this one."""

    tensor: Buffer
    index: tuple[str, ...]
    start: str
    extent: str
    whole: bool

    def at(self, name: str) -> tuple[str, list[str]]:
        """The index of one element, and all indices."""
        own = name if self.start in ("", "0") else f"{self.start} + {name}"
        return own, [text or own for text in self.index]

    def is_inside(self, name: str) -> str:
        """The condition that an element lies before the end of the tensor."""
        number, sizes = self.index.index(""), self.tensor.shape_nodes
        size = code(sizes[number]) if len(sizes) == len(self.index) else f"{self.tensor.name}.shape[{number}]"
        return f"{self.at(name)[0]} < {size}"

    @property
    def ends_alone(self) -> bool:
        """True if a copy of one element stops at the end of the tensor by itself: it looks at the last two axes."""
        return self.whole or self.index.index("") >= len(self.index) - 2


def column_of(found: Region) -> Column:
    """The column that a region with one loop variable is."""
    (item,) = found.ranges
    axis = next(axis for axis in found.axes if axis.range is item)
    size = found.buffer.shape[found.axes.index(axis)]
    index = tuple("" if other is axis else other.start for other in found.axes)
    start = "" if axis.lo.is_zero else axis.start
    return Column(found.buffer, index, start, range_text(item), axis.lo.is_zero and item.extent == size)


def sliced_column(operand: Operand) -> Column | None:
    """The column that a copy names with one slice which is not the last axis; None for other regions."""
    dims = operand.dims or ()
    sliced = [number for number, dim in enumerate(dims) if isinstance(dim.node, cst.Slice)]
    one = const(1)
    wide = [number for number in sliced if dims[number].extent != one]
    shape = operand.buffer.shape
    known = len(dims) == len(shape)
    if len(wide) != 1 or wide[0] == len(dims) - 1 or (known and shape[-1] == one):
        return None
    axis = dims[wide[0]]
    assert isinstance(axis.node, cst.Slice)
    assert axis.extent is not None
    upper = code(axis.node.upper) if axis.node.upper is not None and axis.lo.is_zero else None
    extent = upper or size_text(axis.extent)
    if extent is None:
        return None
    index = []
    for number, dim in enumerate(dims):
        node = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
        index.append("" if number == wide[0] else code(node) if node is not None else "0")
    start = code(axis.node.lower) if axis.node.lower is not None and not axis.lo.is_zero else ""
    whole = known and axis.lo.is_zero and axis.extent == shape[wide[0]]
    return Column(operand.buffer, tuple(index), start, extent, whole)


def load_column(column: Column, tile: str, name: str, names: Names, at: str = "") -> list[str]:
    """Read it into a tile, at ``tile[at]``; what lies behind the end of the tensor is zero."""
    _, index = column.at(name)
    value = names.fresh(f"{column.tensor.name.lower()}_value")
    inner = [f"{value} = {column.tensor.name}[{', '.join(index)}]", f"{tile}[{at or name}] = {value}"]
    head = f"for {name} in T.serial({column.extent}):"
    if column.whole:
        return [head, *(f"    {line}" for line in inner)]
    guarded = [head, f"    if {column.is_inside(name)}:", *(f"        {line}" for line in inner)]
    if BITS.get(column.tensor.dtype) == _WITHOUT_FILL:
        return [*guarded, "    else:", f"        {tile}[{at or name}] = 0"]
    return [f"T.clear({tile})", *guarded]


def place_in(tile: Buffer, name: str) -> str | None:
    """The index of element ``name`` of a tile of which one axis is longer than 1; "" if it has no other."""
    if len(tile.shape) == 1:
        return ""
    long = [number for number, size in enumerate(tile.shape) if size != const(1)]
    if len(long) > 1:
        return None
    own = long[0] if long else 0
    return ", ".join(name if number == own else "0" for number in range(len(tile.shape)))


def store_column(
    column: Column, tile: str, rows: str, name: str, names: Names, lanes: int, tests: Sequence[str] = (), at: str = ""
) -> list[str]:
    """Store a tile of one axis, every element from a row of ``rows``, and only where the ``tests`` hold."""
    _, index = column.at(name)
    last = index[-1]
    index[-1] = f"{last}:{int(last) + 1}" if last.isdigit() else f"{last} : {last} + 1"
    store = f"T.copy({rows}[{name}, 0:1], {column.tensor.name}[{', '.join(index)}])"
    inner = [f"    if {all_of(tests)}:", f"        {store}"] if tests else [f"    {store}"]
    head = f"for {name} in T.serial({column.extent}):"
    spread = [head, f"    {rows}[{name}, 0] = {tile}[{at}]"]
    if not at:  # a tile of one axis is a vector that the vectoriser spreads along the rows
        lane = names.fresh("lane")
        spread = [
            f"for {name}, {lane} in T.Parallel({column.extent}, {lanes}):",
            f"    {rows}[{name}, {lane}] = {tile}[{name}]",
        ]
    return [*spread, head, *inner]


def lanes_of(job: Job, tensor: Buffer) -> int:
    """How many elements of a tensor make a row of 32 bytes."""
    return _BLOCK_BITS // BITS.get(element_type(job, tensor), _NARROWEST)
