"""TL119: ``if c: y[i] = a`` / ``else: y[i] = b``, in a loop over elements of a global tensor, is one store of a choice.

Each element is stored whatever the condition says, so that whole rows can be stored at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Memory, Stmt, Store, in_parallel, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits


def join(job: Job) -> None:
    """Write one store for the arms of each such ``if``, with the arms of its ``elif``."""
    edits = Edits(job.file.index)
    for stmt, parents in walk_with_parents(job.kernel.body):
        parallel = in_parallel(parents)
        if not parallel or not isinstance(stmt, Branch) or isinstance(job.file.index.parent(stmt.node), cst.If):
            continue
        found = _choice(stmt)
        if found is not None:
            edits.replace_many(stmt.node, parse(job, " = ".join(found), stmt.node))
            job.change("TL119", stmt.node, f"wrote one store to `{found[0]}` for all arms of an `if`")
    job.apply(edits)


def _choice(branch: Branch) -> tuple[str, str] | None:
    """The element that every arm stores, and the value that it gets; None if the arms do anything else."""
    if branch.via or not isinstance(branch.node, cst.If):
        return None
    arms = _stored(branch.then), _stored(branch.orelse)
    if arms[0] is None or arms[1] is None or arms[0][0] != arms[1][0]:
        return None
    return arms[0][0], f"T.if_then_else({code(branch.node.test)}, {arms[0][1]}, {arms[1][1]})"


def _stored(arm: Sequence[Stmt]) -> tuple[str, str] | None:
    found = arm[0] if len(arm) == 1 else None
    if isinstance(found, Branch):
        return _choice(found)
    if not isinstance(found, Store) or found.augmented or found.target.buffer.memory is not Memory.GM:
        return None
    return (code(found.target.node), code(found.value.node)) if isinstance(found.node, cst.Assign) else None
