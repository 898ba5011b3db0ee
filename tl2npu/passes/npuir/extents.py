"""How many elements a slice of a tensor takes, as text that can stand in a shape."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Dim, Operand
from tl2npu.passes.job import Job


def extents(job: Job, operand: Operand) -> list[str] | None:
    """The extents of the sliced axes; None if there is none, or one is not known when the kernel is compiled."""
    found: list[str] = []
    for dim, size in zip(operand.dims or (), operand.buffer.shape, strict=False):
        if dim.is_point:
            continue
        text = _extent(job, dim, str(size))
        if text is None:
            return None
        found.append(text)
    return found or None


def _extent(job: Job, dim: Dim, size: str) -> str | None:
    assert isinstance(dim.node, cst.Slice)
    if dim.extent is None or job.late.is_late(dim.extent):
        return None
    if dim.extent.constant is not None:
        return str(dim.extent.constant)
    lower, upper = dim.node.lower, dim.node.upper
    if lower is None and upper is None:
        return size
    wanted = dim.extent
    for part in (lower, upper):
        for node in _candidates(part):
            if job.file.evaluator.sym(node, job.located.env) == wanted:
                return code(node)
    return str(wanted) if str(wanted).isidentifier() else None


def _candidates(node: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """The parts of a bound, any of which may be the extent."""
    if isinstance(node, cst.BinaryOperation):
        return [node, *_candidates(node.left), *_candidates(node.right)]
    return [] if node is None else [node]
