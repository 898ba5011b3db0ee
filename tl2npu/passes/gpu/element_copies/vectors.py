"""TL171, TL702: copies between two UB tiles that the NPU's ``T.copy`` does not make, element by element.

It moves rows, and a vector is one row (:mod:`tl2npu.kernel.memory.ub_copies`); it moves whole blocks of 32 bytes
(:mod:`tl2npu.kernel.memory.alignment`). The scalar unit reads and writes any element.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.memory import alignment
from tl2npu.kernel.memory.ub_copies import aligned, sides
from tl2npu.kernel.model import Buffer, Copy, Dim, Memory, Operand
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import dtype_text, extent_text, size_text
from tl2npu.source.edits import Edits

_MATRIX = 2
_COUNTERS = ((), (("i", "element"),), (("i", "row"), ("j", "column")))


@dataclass(frozen=True)
class Axis:
    """One index: where it begins, and how many elements it takes, if more than one; their number as text."""

    start: str
    extent: Sym
    text: str | None

    @property
    def moves(self) -> bool:
        """More than one element."""
        return self.extent != const(1)


def by_element(job: Job) -> None:
    """Columns to and from vectors, and parts at any byte; to be called when every tile has its memory."""
    edits = Edits(job.file.index)
    names = Names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or not stmt.src.buffer.memory is stmt.dst.buffer.memory is Memory.UB:
            continue
        column = _column_and_vector(stmt)
        if column is None and job.judge.certain(alignment.of_copy(stmt), stmt):
            continue
        text = _loops(job, stmt, names)
        if text is None:
            continue  # TL700 or TL886 says why the kernel is left alone
        edits.replace_many(stmt.node, parse(job, text, stmt.node))
        if column is not None:
            shown = f"`{code(column.node)}` is a column: its elements are copied one by one"
            job.change("TL171", stmt.node, shown)
        else:
            shown = f"`{code(stmt.src.node)}` is copied to `{code(stmt.dst.node)}` element by element (slow)"
            job.change("TL702", stmt.node, shown)
    job.apply(edits)


def _column_and_vector(stmt: Copy) -> Operand | None:
    """The column, in a copy between rows of one column of a tile and a vector."""
    pair = [_is_column(operand) for operand in (stmt.src, stmt.dst)]
    vectors = [len(operand.buffer.shape) == 1 for operand in (stmt.src, stmt.dst)]
    found = sides(stmt)
    if found is None or (not (pair[0] and vectors[1]) and not (pair[1] and vectors[0])):
        return None
    if all(side.columns == side.stride for side in found):
        return None
    return stmt.src if vectors[1] else stmt.dst


def _is_column(operand: Operand) -> bool:
    dims = operand.dims
    if dims is None or len(dims) != _MATRIX or len(operand.buffer.shape) != _MATRIX or dims[0].is_point:
        return False
    return dims[1].is_point or dims[1].extent == const(1)


def _loops(job: Job, stmt: Copy, names: Names) -> str | None:
    """The copy as loops over the elements; None where the extents do not match or cannot be written."""
    src, dst = _axes(stmt.src, stmt.dst), _axes(stmt.dst, stmt.src)
    if src is None or dst is None or stmt.options:
        return None
    pairs = list(zip([a for a in src if a.moves], [a for a in dst if a.moves], strict=False))
    if (
        len(pairs) >= len(_COUNTERS)
        or len(pairs) != sum(a.moves for a in src)
        or len(pairs) != sum(a.moves for a in dst)
    ):
        return None
    if any(left.extent != right.extent for left, right in pairs):
        return None
    counters = [names.fresh(*wishes) for wishes in _COUNTERS[len(pairs)]]
    value = _element(stmt.src.buffer, src, counters)
    source, target = (element_type(job, operand.buffer) for operand in (stmt.src, stmt.dst))
    if source != target:
        value = f"T.cast({value}, {dtype_text(stmt.dst.buffer)})"
    text = f"{_element(stmt.dst.buffer, dst, counters)} = {value}\n"
    for name, (left, right) in reversed(list(zip(counters, pairs, strict=True))):
        extent = left.text or right.text or size_text(left.extent)
        if extent is None:
            return None
        text = f"for {name} in T.serial({extent}):\n{textwrap.indent(text, '    ')}"
    return text


def _axes(operand: Operand, other: Operand) -> list[Axis] | None:
    buffer = operand.buffer
    if operand.dims is None:
        return [Axis("0", size, _extent_text(buffer, n)) for n, size in enumerate(buffer.shape)]
    extents = extents_of(operand) or aligned(extents_of(other) or (), operand)
    if len(extents) != len(operand.dims) or len(operand.dims) != len(buffer.shape):
        return None
    found = []
    for n, (dim, extent) in enumerate(zip(operand.dims, extents, strict=True)):
        whole = dim.lo.is_zero and extent == buffer.shape[n]
        upper = dim.node.upper if isinstance(dim.node, cst.Slice) and dim.lo.is_zero else None
        text = code(upper) if upper is not None else _extent_text(buffer, n) if whole else None
        found.append(Axis(_start(dim), extent, text))
    return found


def _extent_text(buffer: Buffer, axis: int) -> str | None:
    return extent_text(buffer, axis) if isinstance(buffer.node, cst.Call) else None


def _element(buffer: Buffer, axes: list[Axis], counters: list[str]) -> str:
    moving = iter(counters)
    return f"{buffer.name}[{', '.join(_index(axis, moving) for axis in axes)}]"


def _index(axis: Axis, moving: Iterator[str]) -> str:
    if not axis.moves:
        return axis.start
    name = next(moving)
    return name if axis.start == "0" else f"{axis.start} + {name}"


def _start(dim: Dim) -> str:
    node = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
    if node is None:
        return "0"
    loose = isinstance(node, (cst.IfExp, cst.Comparison, cst.BooleanOperation, cst.Lambda)) and not node.lpar
    return f"({code(node)})" if loose else code(node)
