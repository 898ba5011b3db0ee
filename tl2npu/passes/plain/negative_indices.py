"""TL177: ``x[-1, j]``, the last row for a GPU's compiler and an address before the first one for an NPU's."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Operand, walk_with_parents
from tl2npu.kernel.ranges.reach import Reach
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.normal import own_parts
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of


def count_from_the_start(job: Job) -> None:
    """Add the size of the axis to every index that is known to be negative (``legalize_negative_index.cc``)."""
    edits = Edits(job.file.index)
    reach = Reach(job.kernel, job.file.evaluator)
    seen: set[int] = set()
    for stmt, parents in walk_with_parents(job.kernel.body):
        if stmt.via:
            continue
        bounds = reach.bounds(parents, stmt)
        for part in own_parts(stmt):
            for node in nodes_of(part, cst.Subscript):
                operand = job.file.evaluator.operand(node, stmt.env)
                if operand is None or id(node) in seen:
                    continue
                seen.add(id(node))
                for axis, dim in enumerate(operand.dims or ()):
                    if not dim.is_point or axis >= len(operand.buffer.shape) or not bounds.is_not_negative(-1 - dim.lo):
                        continue
                    if not bounds.is_not_negative(dim.lo):  # else its conditions never hold together
                        edits.replace(dim.node, expression(job, _text(operand, axis), dim.node))
                        text = f"rewrote the negative index `{code(dim.node)}` of `{operand.buffer.name}`"
                        job.change("TL177", node, text)
    job.apply(edits)


def _text(operand: Operand, axis: int) -> str:
    dim = (operand.dims or ())[axis]
    size = code(operand.buffer.shape_nodes[axis])
    size = size if size.replace("_", "").isalnum() else f"({size})"
    value, whole = dim.lo.constant, operand.buffer.shape[axis].constant
    if value is not None and whole is not None:
        return str(whole + value)
    return f"{size} + ({code(dim.node)})" if value is None else f"{size} - {-value}"
