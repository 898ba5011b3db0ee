"""The axes of parallel loops, and loops over them as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression

INDEPENDENT = ("parallel", "vectorized")
MOST_AXES = 2
Line: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement
Axes: TypeAlias = list[tuple[str, str]]
"""Variable and extent of each axis, as text."""


def node_of(loop: Loop) -> cst.For:
    """The loop's text; raises :class:`Blocked` for a body on the same line."""
    assert isinstance(loop.node, cst.For)
    if not isinstance(loop.node.body, cst.IndentedBlock):
        raise Blocked("TL120", loop.node, "this loop has its body on the same line")
    return loop.node


def axes_of(loop: Loop) -> Axes:
    """Variables and extents; raises :class:`Blocked` for a loop that does not count from 0."""
    found = []
    for item in loop.ranges:
        if not item.start.is_zero or item.stop_node is None:
            raise Blocked("TL120", loop.node, f"`{item.name}` does not start at 0")
        found.append((item.name, code(item.stop_node)))
    return found


def nest(job: Job, axes: Axes, body: cst.BaseSuite) -> cst.For:
    """Serial loops over the outer axes, a parallel one over the last two."""
    inner = axes[-MOST_AXES:]
    result = _for(job, [name for name, _ in inner], f"T.Parallel({', '.join(size for _, size in inner)})", body)
    outer = axes[:-MOST_AXES]
    return in_order(job, outer, cst.IndentedBlock([result])) if outer else result


def in_order(job: Job, axes: Axes, body: cst.BaseSuite) -> cst.For:
    """Serial loops."""
    *outer, (name, size) = axes
    result = _for(job, [name], f"T.serial({size})", body)
    return in_order(job, outer, cst.IndentedBlock([result])) if outer else result


def _for(job: Job, names: Sequence[str], call: str, body: cst.BaseSuite) -> cst.For:
    target = cst.parse_expression(", ".join(names))
    assert isinstance(target, cst.BaseAssignTargetExpression)
    return cst.For(target, expression(job, call, job.located.node), body)
