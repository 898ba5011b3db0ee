"""TL412: choices between single values by ``T.Select``: ``T.if_then_else`` is a vector operation only."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Branch, Copy, Let, Loop, Op, Scalar, Stmt, in_parallel, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits


def choose(job: Job) -> None:
    """Rewrite the choices outside of parallel loops.

    Both values of ``T.Select`` are worked out; where one reads memory, the condition may be what makes that legal, and
    the kernel is refused.
    """
    edits = Edits(job.file.index)
    for stmt, parents in walk_with_parents(job.kernel.body):
        if in_parallel(parents) or stmt.via:
            continue
        for node in _values(stmt):
            for call, name in called(job, node):
                if name != "if_then_else" or not call.args:
                    continue
                arms = [arg.value for arg in call.args[1:]]
                if any(job.file.evaluator.loads(arm, stmt.env) for arm in arms):
                    text = "`T.if_then_else` outside of T.Parallel reads memory, which its condition may protect"
                    raise Blocked("TL418", call, text)
                edits.replace(call.func, expression(job, "T.Select", call.func))
                job.change("TL412", call, "wrote `T.Select` for single values")
    job.apply(edits)


def _values(stmt: Stmt) -> list[cst.CSTNode]:
    """The values of a statement itself."""
    if isinstance(stmt, Let):
        return [stmt.value.node]
    if isinstance(stmt, Branch):
        return [stmt.cond.node]
    if isinstance(stmt, Loop):
        return [stmt.call] if stmt.call is not None else []
    if isinstance(stmt, Copy):
        return [stmt.call]
    if isinstance(stmt, Op):
        return [arg.node for arg in stmt.args.values() if isinstance(arg, Scalar)]
    return []
