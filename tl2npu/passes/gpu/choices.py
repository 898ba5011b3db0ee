"""TL737: ``x[i] = T.if_then_else(c, a, b)`` outside of parallel loops is a branch, as C++ has no such assignment."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop, Store, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import INDEPENDENT
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits

_CHOICE = "tilelang.language.if_then_else"


def to_branches(job: Job) -> None:
    """Assign to elements and variables in the branches of an ``if``, choice by choice from the outermost one on."""
    until_settled(job, lambda: _branch(job))


def _branch(job: Job) -> bool:
    edits = Edits(job.file.index)
    for stmt, parents in walk_with_parents(job.kernel.body):
        node = stmt.node
        is_kept = isinstance(stmt, Store) or (isinstance(stmt, Let) and stmt.name in job.kernel.buffers)
        if not is_kept or stmt.via or not isinstance(node, (cst.Assign, cst.AugAssign)):
            continue
        value = node.value
        if not isinstance(value, cst.Call) or job.file.names.resolve(value.func) != _CHOICE:
            continue
        if len(value.args) != 3 or any(arg.keyword is not None or arg.star for arg in value.args):
            continue
        if any(isinstance(above, Loop) and above.kind in INDEPENDENT for above in parents):
            continue
        test, yes, no = (arg.value for arg in value.args)
        lines = [f"{code(node.with_changes(value=part, semicolon=cst.MaybeSentinel.DEFAULT))}\n" for part in (yes, no)]
        is_old = isinstance(node, cst.Assign) and code(no) == code(node.targets[0].target)
        text = f"if {code(test)}:\n    {lines[0]}" + ("" if is_old else f"else:\n    {lines[1]}")
        edits.replace_many(node, parse(job, text, node))
        job.change("TL737", node, f"`{lines[0].partition(' ')[0]}` is assigned in the branches of an `if`")
    job.apply(edits)
    return bool(edits)
