"""TL119: branches in the builder's spelling, ``with T.If(c): with T.Then(): ...``, and choices between loops."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.conditions import rewritten
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Loop, Stmt, children
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def to_python(job: Job) -> None:
    """Write ``if`` for every branch that is a ``with`` block, and one loop where there is a choice of two."""
    edits = Edits(job.file.index)
    for stmt in _outermost(job.kernel.body):
        new = cst.ensure_type(rewritten(stmt.node, job.file.names), cst.If)
        edits.replace(stmt.node, new.with_changes(leading_lines=()))  # those above the block stay
        job.change("TL119", stmt.node, "`if` for `with T.If(...)`")
    job.apply(edits)
    _choose_loops(job)


def _choose_loops(job: Job) -> None:
    """``T.Pipelined(n) if deep else T.serial(n)``: both run over the same, in order."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and isinstance(stmt.node, cst.For) and not stmt.via:
            written = stmt.node.iter
            if isinstance(written, cst.IfExp) and stmt.call is not None:
                edits.replace(written, stmt.call)
                job.change(
                    "TL119", written, f"wrote `{code(stmt.call)}` for a choice between loops over the same range"
                )
    job.apply(edits)


def _outermost(body: list[Stmt]) -> list[Stmt]:
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Branch) and isinstance(stmt.node, cst.With):
            found.append(stmt)
        else:
            found += [item for inner in children(stmt) for item in _outermost(inner)]
    return [stmt for stmt in found if not stmt.via]
