"""TL160, TL161: ``T.clear`` and ``T.fill`` become ``T.tile.fill``."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import CUBE_MEMORY, Memory, Op, Operand, Scalar
from tl2npu.kernel.windows import has_two_bounds
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import literal
from tl2npu.passes.writing.statements import expression, parse
from tl2npu.source.edits import Edits

_NAMES = ("clear", "fill")


def rewrite(job: Job) -> None:
    """Fills of vector tiles."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL and stmt.op.name in _NAMES:
            _one(job, stmt, edits)
    job.apply(edits)


def _one(job: Job, stmt: Op, edits: Edits) -> None:
    target = stmt.args["buffer"]
    if not isinstance(target, Operand):
        raise Blocked("TL161", stmt.node, f"cannot tell which buffer `T.{stmt.op.name}` fills")
    value = stmt.args.get("value")
    if value is None:
        text = literal(job, target.buffer, cst.Integer("0"))
    else:
        text = literal(job, target.buffer, value.node)
    if target.buffer.memory is Memory.VAR or target.is_indexed:
        element = code(target.node) if target.dims is not None else f"{code(target.node)}[0]"
        edits.replace_many(stmt.node, parse(job, f"{element} = {text}\n", stmt.node))
        job.change("TL160", stmt.node, f"one element of `{target.buffer.name}` is stored")
        return
    _check(stmt, target, value)
    keywords = ("buffer=", "value=") if has_two_bounds(target.node) else ("", "")  # such a slice by its name only
    filled = f"T.tile.fill({keywords[0]}{code(target.node)}, {keywords[1]}{text})"
    edits.replace(stmt.call, expression(job, filled, stmt.node))
    job.change("TL160", stmt.node, f"`{target.buffer.name}` is filled with `T.tile.fill`")


def _check(stmt: Op, target: Operand, value: Operand | Scalar | None) -> None:
    """Raise :class:`Blocked` for what ``T.tile.fill`` would not fill, or would fill beside the region."""
    buffer = target.buffer
    if buffer.memory is Memory.GM:
        raise Blocked("TL161", stmt.node, f"`{buffer.name}` is a global tensor; fill a tile and copy it there")
    if buffer.memory in CUBE_MEMORY:
        raise Blocked("TL161", stmt.node, f"`{buffer.name}` is in cube-core memory, which cannot be filled")
    if isinstance(value, Operand) and not (value.dims and all(dim.is_point for dim in value.dims)):
        raise Blocked("TL161", stmt.node, f"the fill value `{code(value.node)}` is not a number")
    if not contiguous(target):
        text = f"`{code(target.node)}` is not contiguous in `{buffer.name}`, but `T.tile.fill` needs that"
        raise Blocked("TL161", stmt.node, text)


def contiguous(target: Operand) -> bool:
    """True for a region whose elements lie behind each other: points, then at most one part, then whole axes."""
    if target.dims is None or target.is_whole:
        return True
    dims = list(target.dims)
    while dims and dims[0].is_point:
        dims.pop(0)
    whole = target.buffer.shape[len(target.dims) - len(dims) :]
    rest = list(zip(dims, whole, strict=False))[1:]
    return all(dim.covers(size) for dim, size in rest)
