"""TL119: ``if c: y[i] = a`` / ``else: y[i] = b``, in a loop over elements of a global tensor, is one store of a choice.

Each element is stored whatever the condition says, so that whole rows can be stored at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Loop, Memory, Stmt, Store, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits


def join(job: Job) -> None:
    """Write one store for the two arms, inner ones first: an ``elif`` is the choice of its ``else``."""
    until_settled(job, lambda: _joined(job))


def _joined(job: Job) -> bool:
    for stmt, parents in walk_with_parents(job.kernel.body):
        parallel = any(isinstance(above, Loop) and above.kind == "parallel" for above in parents)
        if not parallel or not isinstance(stmt, Branch) or stmt.via or not isinstance(stmt.node, cst.If):
            continue
        yes, no = _only_store(stmt.then), _only_store(stmt.orelse)
        other = stmt.node.orelse
        if yes is None or no is None or not isinstance(other, cst.Else):
            continue
        if len(body_of(stmt.node)) != 1 or len(other.body.body) != 1 or code(yes.target.node) != code(no.target.node):
            continue
        test, left, right = (code(part) for part in (stmt.node.test, yes.value.node, no.value.node))
        text = f"{code(yes.target.node)} = T.if_then_else({test}, {left}, {right})"
        edits = Edits(job.file.index)
        edits.replace_many(stmt.node, parse(job, text, stmt.node))
        job.change("TL119", stmt.node, f"wrote one store to `{code(yes.target.node)}` for both arms of an `if`")
        job.apply(edits)
        return True
    return False


def _only_store(arm: Sequence[Stmt]) -> Store | None:
    found = arm[0] if len(arm) == 1 else None
    plain = isinstance(found, Store) and not found.augmented and isinstance(found.node, cst.Assign)
    return found if plain and isinstance(found, Store) and found.target.buffer.memory is Memory.GM else None
