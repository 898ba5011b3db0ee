"""TL169: one axis of a tensor that is not its last: elements that lie a row apart.

A copy of such a region would take rows of one element for the rows of the tile. Where the axis is the last but one, a
single transfer takes an element of each row to or from the first column of a wider tile, whose rows begin at multiples
of 32 bytes (``copy_gm_to_ub`` and ``copy_ub_to_gm`` with a ``maskShapeN`` of 1, common.h:197-236; the code for both
targets was read). A load pads the rows with zeros: ``DataCopyPad`` with ``isPad`` gives all of a block its padding
value, so that the sum of a row is its element. Else each element is moved by itself: read by the scalar unit, or
stored from a row of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Memory
from tl2npu.kernel.regions import Region
from tl2npu.kernel.regions import extent_text as range_text
from tl2npu.kernel.symbolic import const
from tl2npu.passes.gpu.element_copies.guards import all_of
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import BITS, element_type, number_type
from tl2npu.passes.writing.statements import Names
from tl2npu.passes.writing.tiles import dtype_text, size_text
from tl2npu.source.tree import names_in

_BLOCK_BITS = 256
_NARROWEST = 16
_SUMMED = "float32"
"""The type in which rows are summed: ``T.reduce_sum`` has it on every device."""
_WITHOUT_FILL = 8
"""Tiles of elements of so many bits cannot be filled (TL710)."""
_PADDED = (16, 32)
"""Of elements of so many bits, what a load does not reach is filled (common.h:41-45, ``IsDuplicateSupported_v``)."""


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
    def ends_rows(self) -> bool:
        """True if its elements are those of one index in the last axis, and the rows that of the last axis but one."""
        return self.index.index("") == len(self.index) - 2

    def region(self) -> str:
        """The column as a region of two axes."""
        *outer, last = self.index
        first = self.start or "0"
        rows = f"{first} : {first} + {self.extent}" if self.start else f"0:{self.extent}"
        return f"{self.tensor.name}[{', '.join([*(text or rows for text in outer), _alone(last)])}]"

    @property
    def ends_alone(self) -> bool:
        """True if a copy of one element stops at the end of the tensor by itself: it looks at the last two axes."""
        return self.whole or self.index.index("") >= len(self.index) - 2


@dataclass(frozen=True)
class Place:
    """A tile of one long axis. ``at``: the index of an element, "" where it has no other axis."""

    name: str
    dtype: str
    at: str = ""


def column_of(found: Region) -> Column:
    """The column that a region with one loop variable is."""
    (item,) = found.ranges
    axis = next(axis for axis in found.axes if axis.range is item)
    size = found.buffer.shape[found.axes.index(axis)]
    index = tuple("" if other is axis else other.start for other in found.axes)
    start = "" if axis.lo.is_zero else axis.start
    return Column(found.buffer, index, start, range_text(item), axis.lo.is_zero and item.extent == size)


def sliced_column(job: Job, copy: Copy) -> Column | None:
    """The column that a copy names with one slice which is not the last axis; None for other regions."""
    operand = copy.src if copy.src.buffer.memory is Memory.GM else copy.dst
    if operand.buffer.memory is not Memory.GM:
        return None
    dims = operand.dims or ()
    sliced = [number for number, dim in enumerate(dims) if isinstance(dim.node, cst.Slice)]
    one = const(1)
    wide = [number for number in sliced if dims[number].extent != one]
    shape = operand.buffer.shape
    known = len(dims) == len(shape)
    if len(wide) != 1 or wide[0] == len(dims) - 1:
        return None
    axis = dims[wide[0]]
    assert isinstance(axis.node, cst.Slice)
    assert axis.extent is not None
    upper = code(axis.node.upper) if axis.node.upper is not None and axis.lo.is_zero else None
    extent = upper or size_text(axis.extent)
    if extent is None:  # a part of the tile may be meant
        given = (name for name in names_in(axis.node) if job.file.evaluator.sym(name, copy.env) == axis.extent)
        extent = next((name.value for name in given), None)
    if extent is None:
        return None
    index = []
    for number, dim in enumerate(dims):
        node = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
        index.append("" if number == wide[0] else code(node) if node is not None else "0")
    start = code(axis.node.lower) if axis.node.lower is not None and not axis.lo.is_zero else ""
    whole = known and axis.lo.is_zero and axis.extent == shape[wide[0]]
    return Column(operand.buffer, tuple(index), start, extent, whole)


@dataclass(frozen=True)
class Move:
    """Statements that move a column, the tiles that they need, and what to say of it."""

    lines: list[str]
    tiles: list[str]
    told: str


def load_column(job: Job, column: Column, tile: Place, name: str, names: Names) -> Move:
    """Read it into a tile; what lies behind the end of the tensor is zero."""
    tensor, bits = column.tensor, BITS.get(element_type(job, column.tensor))
    base = tensor.name.lower()
    if not (job.ways.spends and column.ends_rows) or bits not in (None, *_PADDED):
        _, index = column.at(name)
        value = names.fresh(f"{base}_value")
        inner = [f"{value} = {tensor.name}[{', '.join(index)}]", f"{tile.name}[{tile.at or name}] = {value}"]
        told = f"a column of `{tensor.name}` is read element by element, which is slow"
        return Move(_one_by_one(column, tile, name, inner, filled=bits != _WITHOUT_FILL), [], told)
    job.has_spent = True
    rows = names.fresh(f"{base}_column")
    lanes = lanes_of(job, tensor) if bits else _BLOCK_BITS // _WITHOUT_FILL
    shape = f"[{column.extent}, {lanes}]"
    told = f"a column of `{tensor.name}` is loaded into the first column of a tile"
    move = Move(
        [f"T.copy({column.region()}, {rows})"], [f"{rows} = T.alloc_shared({shape}, {dtype_text(tensor)})"], told
    )
    if number_type(job, tensor) == "float" and not tile.at:
        _sum_rows(move, column, tile, rows, shape, names)
    else:  # of a type without a name, zeros are asked for: an NPU has no fill of 8-bit tiles
        inner = [f"{tile.name}[{tile.at or name}] = {rows}[{name}, 0]"]
        padded = replace(column, whole=column.whole or bits is not None)
        move.lines.extend(_one_by_one(padded, tile, name, inner, filled=True))
    return move


def _one_by_one(column: Column, tile: Place, name: str, inner: list[str], *, filled: bool) -> list[str]:
    """A loop over the elements; ``filled``: zeros behind the end of the tensor may be written first."""
    head = f"for {name} in T.serial({column.extent}):"
    if column.whole:
        return [head, *(f"    {line}" for line in inner)]
    guarded = [head, f"    if {column.is_inside(name)}:", *(f"        {line}" for line in inner)]
    if filled:
        return [f"T.clear({tile.name})", *guarded]
    return [*guarded, "    else:", f"        {tile.name}[{tile.at or name}] = 0"]


def _sum_rows(move: Move, column: Column, tile: Place, rows: str, shape: str, names: Names) -> None:
    """Add the sums of the rows, each one element and zeros, to a move."""
    tensor, base = column.tensor, column.tensor.name.lower()
    if tensor.dtype != _SUMMED:
        wide = names.fresh(f"{base}_column_wide")
        move.tiles.append(f'{wide} = T.alloc_shared({shape}, "{_SUMMED}")')
        move.lines.append(f"T.copy({rows}, {wide})")
        rows = wide
    summed = tile.name
    if tile.dtype != _SUMMED:
        summed = names.fresh(f"{base}_value")
        move.tiles.append(f'{summed} = T.alloc_shared(({column.extent},), "{_SUMMED}")')
    move.lines.append(f"T.reduce_sum({rows}, {summed}, dim=1)")
    if summed != tile.name:
        move.lines.append(f"T.copy({summed}, {tile.name})")


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
    job: Job, column: Column, tile: Place, name: str, names: Names, tests: Sequence[str] = (), *, ended: bool = False
) -> Move:
    """Store a tile of one axis from the rows of another, and only where the ``tests`` hold.

    ``ended``: the tests hold inside of the tensor only.
    """
    tensor, lanes = column.tensor, lanes_of(job, column.tensor)
    rows = names.fresh(f"{tensor.name.lower()}_rows")
    tiles = [f"{rows} = T.alloc_shared([{column.extent}, {lanes}], {dtype_text(tensor)})"]
    head = f"for {name} in T.serial({column.extent}):"
    lines = [head, f"    {rows}[{name}, 0] = {tile.name}[{tile.at}]"]
    if not tile.at:  # a tile of one axis is a vector that the vectoriser spreads along the rows
        lane = names.fresh("lane")
        lines = [
            f"for {name}, {lane} in T.Parallel({column.extent}, {lanes}):",
            f"    {rows}[{name}, {lane}] = {tile.name}[{name}]",
        ]
    if column.ends_rows and not tests:
        lines.append(f"T.copy({rows}, {column.region()})")
        return Move(lines, tiles, f"a column of `{tensor.name}` is stored from the first column of a tile")
    if not (ended or column.ends_alone):
        tests = [column.is_inside(name), *tests]
    _, index = column.at(name)
    store = f"T.copy({rows}[{name}, 0:1], {tensor.name}[{', '.join([*index[:-1], _alone(index[-1])])}])"
    lines += [head, f"    if {all_of(tests)}:", f"        {store}"] if tests else [head, f"    {store}"]
    return Move(lines, tiles, f"a column of `{tensor.name}` is stored element by element, which is slow")


def _alone(index: str) -> str:
    """One index as a slice."""
    return f"{index}:{int(index) + 1}" if index.isdigit() else f"{index} : {index} + 1"


def lanes_of(job: Job, tensor: Buffer) -> int:
    """How many elements of a tensor make a row of 32 bytes, or more where its type is a parameter."""
    bits = BITS.get(element_type(job, tensor), _NARROWEST)
    return _BLOCK_BITS // (bits if tensor.dtype in BITS else min(bits, _NARROWEST))
