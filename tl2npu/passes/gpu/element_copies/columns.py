"""TL171: a tile that is only ever used in column parts becomes one tile for each part.

Neither a copy from global memory nor a gemm takes columns of a tile (compiler-facts 1 and 4: g1_g_cols, g4_slice).
"""

from __future__ import annotations

import re

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Alloc, Buffer, Copy, Kernel, Op, Operand
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import dtype_text, extent_text
from tl2npu.source.edits import Edits

_MATRIX = 2
Part = tuple[Sym, Sym]
"""First column and number of columns."""


def split_columns(job: Job) -> None:
    """One tile for each part, where the parts do not overlap and every use names one of them."""
    edits = Edits(job.file.index)
    names = Names(job)
    for buffer in job.kernel.buffers.values():
        if not buffer.is_tile or len(buffer.shape) != _MATRIX or buffer.statement is None:
            continue
        found = _uses(job.kernel, buffer)
        if found is None:
            continue
        order = _in_order([part for part, _ in found])
        texts = [size_text(extent) for _, extent in order] if order else []
        if len(texts) < _MATRIX or None in texts:
            continue
        given = {}
        lines = []
        for number, part in enumerate(order):
            given[part] = (
                buffer.name if number == 0 else names.fresh(f"{buffer.name}_{'tail' if number == 1 else number}")
            )
            shape = f"[{extent_text(buffer, 0)}, {texts[number]}]"
            lines.append(f"{given[part]} = T.alloc_shared({shape}, {dtype_text(buffer)})")
        edits.replace_many(buffer.statement, parse(job, "\n".join(lines) + "\n", buffer.statement))
        for part, operand in found:
            edits.replace(operand.node, cst.Name(given[part]))
        job.change("TL171", buffer.statement, f"wrote separate tiles for the column parts of `{buffer.name}`")
    job.apply(edits)


def _uses(kernel: Kernel, buffer: Buffer) -> list[tuple[Part, Operand]] | None:
    """Every use with its part; None if one of them is no column part."""
    found: list[tuple[Part, Operand]] = []
    for stmt in kernel.walk():
        if isinstance(stmt, Alloc):
            continue
        operands: list[Operand] = []
        if isinstance(stmt, Copy):
            operands = [operand for operand in (stmt.src, stmt.dst) if operand.buffer is buffer]
        elif isinstance(stmt, Op):
            operands = [operand for _, operand in stmt.operands if operand.buffer is buffer]
        touched = {id(access.operand) for access in accesses(stmt) if access.operand.buffer is buffer}
        if touched - {id(operand) for operand in operands}:
            return None
        for operand in operands:
            if operand.dims is None or len(operand.dims) != _MATRIX or operand.is_whole:
                return None
            rows, columns = operand.dims
            whole = rows.covers(buffer.shape[0])
            if not whole or columns.is_point or columns.extent is None:
                return None
            found.append(((columns.lo, columns.extent), operand))
    return found or None


def _in_order(parts: list[Part]) -> list[Part]:
    """The different parts from left to right; empty if they overlap or leave gaps."""
    left = list(dict.fromkeys(parts))
    order: list[Part] = []
    column = const(0)
    while left:
        following = next((part for part in left if part[0] == column), None)
        if following is None or sum(part[0] == column for part in left) > 1:
            return []
        left.remove(following)
        order.append(following)
        column = following[0] + following[1]
    return order


def size_text(size: Sym) -> str | None:
    """A size as text, if it consists of numbers and of names that are the same in all of the factory."""
    text = str(size)
    return text if re.fullmatch(r"[\w\s+*()/-]+", text) else None
