"""TL119: ``for i, j in T.Parallel(M, N): if i < m: tile[i, j] = ...`` is a loop over the ``m`` rows of the tile.

A GPU needs the longer loop where its threads do not divide the shorter one. For the vector cores the condition would
be a mask over ``M`` rows, of which the tile has ``m``.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Loop, Memory, Range, Stmt, Store, walk
from tl2npu.kernel.ranges.bounds import Bounds, is_size
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def narrow(job: Job) -> None:
    """End such loops with the smaller of their tiles."""
    edits = Edits(job.file.index)
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.via or not isinstance(loop.node, cst.For):
            continue
        branch = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(branch, Branch) or branch.orelse or not isinstance(branch.node, cst.If) or loop.call is None:
            continue
        found = _bound(job, loop, branch)
        if found is None:
            continue
        item, end = found
        args = [
            arg.with_changes(value=end.with_changes(lpar=(), rpar=())) if arg.value is item.stop_node else arg
            for arg in loop.call.args
        ]
        new = loop.node.with_changes(iter=loop.call.with_changes(args=args), body=branch.node.body)
        edits.replace(loop.node, new)
        job.change("TL119", loop.node, f"the loop ends at {item.name} = {code(end)}: `{code(branch.node.test)}`")
    job.apply(edits)


def _bound(job: Job, loop: Loop, branch: Branch) -> tuple[Range, cst.BaseExpression] | None:
    """The loop variable that the condition is about, and the first value for which it does not hold."""
    test = branch.cond.node
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    ((operator, end),) = ((part.operator, part.comparator) for part in test.comparisons)
    if not isinstance(operator, cst.LessThan) or not isinstance(test.left, cst.Name):
        return None
    size = job.file.evaluator.sym(end, branch.env)
    for item in loop.ranges:
        if item.name == test.left.value and item.start.is_zero and item.stop_node is not None:
            fixed = all(is_size(name) for name in size.variables()) and not job.late.is_late(size)
            shorter = Bounds({}).is_not_negative(item.extent - size)
            return (item, end) if fixed and shorter and _has_shorter_tile(branch.then, item, size) else None
    return None


def _has_shorter_tile(body: Sequence[Stmt], item: Range, size: Sym) -> bool:
    """True if a tile is written that ends where the condition does."""
    for stmt in walk(body):
        if isinstance(stmt, Store) and stmt.target.buffer.memory is not Memory.GM and stmt.target.dims is not None:
            for dim, extent in zip(stmt.target.dims, stmt.target.buffer.shape, strict=False):
                if dim.is_point and dim.lo == item.var and extent == size and extent != item.extent:
                    return True
    return False
