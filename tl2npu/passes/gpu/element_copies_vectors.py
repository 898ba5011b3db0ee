"""TL171: a column of a tile to or from a vector, element by element.

The NPU's copy between two UB tiles moves rows, and a vector is one row (:mod:`tl2npu.kernel.ub_copies`).
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Dim, Memory, Operand
from tl2npu.kernel.symbolic import const
from tl2npu.kernel.ub_copies import sides
from tl2npu.passes.gpu.element_copies_columns import size_text
from tl2npu.passes.gpu.element_copies_tiles import dtype_text
from tl2npu.passes.gpu.fills_values import element_type
from tl2npu.passes.gpu.statements import Names, parse
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_MATRIX = 2


def by_element(job: Job) -> None:
    """Columns that are copied to or from vectors; to be called when every tile has its memory."""
    edits = Edits(job.file.index)
    names = Names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or not stmt.src.buffer.memory is stmt.dst.buffer.memory is Memory.UB:
            continue
        pair = [_column(operand) for operand in (stmt.src, stmt.dst)]
        vectors = [len(operand.buffer.shape) == 1 for operand in (stmt.src, stmt.dst)]
        found = sides(stmt)
        if found is None or (not (pair[0] and vectors[1]) and not (pair[1] and vectors[0])):
            continue
        if all(side.columns == side.stride for side in found):
            continue
        column, vector = (stmt.src, stmt.dst) if vectors[1] else (stmt.dst, stmt.src)
        name = names.fresh("i", "element")
        texts = {id(column): _element(column, name), id(vector): _element(vector, name)}
        value = texts[id(stmt.src)]
        source, target = (element_type(job, operand.buffer) for operand in (stmt.src, stmt.dst))
        if source != target:
            value = f"T.cast({value}, {dtype_text(stmt.dst.buffer)})"
        extent = size_text((column.dims or ())[0].extent or const(1))
        if extent is None:
            continue  # TL886 says why the kernel is left alone
        text = f"for {name} in T.serial({extent}):\n    {texts[id(stmt.dst)]} = {value}\n"
        edits.replace_many(stmt.node, parse(job, text, stmt.node))
        job.change("TL171", stmt.node, f"`{code(column.node)}` is a column: its elements are moved one by one")
    job.apply(edits)


def _column(operand: Operand) -> bool:
    """True for rows of one column of a tile."""
    dims = operand.dims
    if dims is None or len(dims) != _MATRIX or len(operand.buffer.shape) != _MATRIX or dims[0].is_point:
        return False
    return dims[1].is_point or dims[1].extent == const(1)


def _element(operand: Operand, name: str) -> str:
    """One element of a column, or of a vector, by its number."""
    first, *rest = operand.dims or (None,)
    at = name if first is None or first.lo.is_zero else f"{_start(first)} + {name}"
    return f"{operand.buffer.name}[{', '.join([at, *map(_start, rest)])}]"


def _start(dim: Dim) -> str:
    node = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
    return "0" if node is None else code(node)
