"""TL741: copies whose part of a tile has a size that is known at run time only.

The compiler makes that size a template argument. A whole tile in its place moves the same elements: a store ends where
the window of the tensor does; a load also fills what lies behind, so it goes to a tile that was filled with a number
just before, or through a tile of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Memory, Op, Operand, Scalar, Stmt, blocks, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import Tiles
from tl2npu.source.edits import Edits

_COLON = cst.Colon(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def to_whole_tiles(job: Job) -> None:
    """Rewrite every such copy between a tensor and a tile of the vector core."""
    edits, tiles = Edits(job.file.index), Tiles(job, Names(job))
    for block in blocks(job.kernel.body):
        for place, stmt in enumerate(block):
            if isinstance(stmt, Copy) and not stmt.options:
                _one(job, stmt, block[:place], edits, tiles)
    tiles.commit(edits)
    job.apply(edits)


def _one(job: Job, copy: Copy, before: Sequence[Stmt], edits: Edits, tiles: Tiles) -> None:
    loads = copy.src.buffer.memory is Memory.GM
    outer, inner = (copy.src, copy.dst) if loads else (copy.dst, copy.src)
    size = _late_size(job, inner)
    if outer.buffer.memory is not Memory.GM or outer.is_indexed or size is None:
        return
    if not loads:
        text = f"T.copy({code(_all_columns(inner))}, {code(outer.node)})\n"
    else:
        value = _filled_with(inner.buffer, before)
        if value is not None and len(inner.buffer.shape) == 1:
            pad = "" if value in ("0", "0.0") else f", pad_value={value}"
            text = f"T.copy({code(outer.node)}, {inner.buffer.name}{pad})\n"
        elif len(inner.buffer.shape) == 1:
            name = tiles.like(inner.buffer, f"{inner.buffer.name}_part")
            counter = tiles.names.fresh("i", "element")
            text = f"T.copy({code(outer.node)}, {name})\nfor {counter} in T.serial({size}):\n"
            text += f"    {inner.buffer.name}[{counter}] = {name}[{counter}]\n"
        else:
            return  # TL741 tells of it
    edits.replace_many(copy.node, parse(job, text, copy.node))
    shown = f"`{code(inner.node)}` has a size that is known at run time only: a whole tile is copied"
    job.change("TL741", copy.node, shown)


def _late_size(job: Job, inner: Operand) -> str | None:
    """The late size of the last axis of a part that begins with its row; None for other parts."""
    if inner.buffer.memory is not Memory.UB or not inner.dims or len(inner.dims) != len(inner.buffer.shape):
        return None
    *rows, last = inner.dims
    if last.extent is None or not isinstance(last.node, cst.Slice) or last.node.upper is None:
        return None
    if not last.lo.is_zero or not job.late.is_late(last.extent) or not all(dim.is_point for dim in rows):
        return None
    return code(last.node.upper)


def _all_columns(inner: Operand) -> cst.BaseExpression:
    assert isinstance(inner.node, cst.Subscript)
    if len(inner.node.slice) == 1:
        return inner.node.value
    *rows, last = inner.node.slice
    return inner.node.with_changes(slice=[*rows, last.with_changes(slice=cst.Slice(None, None, first_colon=_COLON))])


def _filled_with(buffer: Buffer, before: Sequence[Stmt]) -> str | None:
    """The number that the whole tile was filled with, and nothing touched it since."""
    for stmt in reversed(before):
        touched = [access for part in walk([stmt]) for access in accesses(part) if access.operand.buffer is buffer]
        if not touched:
            continue
        target = stmt.args.get("buffer") if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL else None
        if not isinstance(stmt, Op) or not isinstance(target, Operand) or not target.is_whole:
            return None
        value = stmt.args.get("value")
        if value is None:
            return "0"
        node = value.node.expression if isinstance(value.node, cst.UnaryOperation) else value.node
        return code(value.node) if isinstance(value, Scalar) and isinstance(node, (cst.Integer, cst.Float)) else None
    return None
