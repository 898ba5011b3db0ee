"""TL119: a tile that is allocated in an arm of an ``if`` and used behind it is allocated in front of it.

The NPU's front end forgets the names of an arm behind it, also where Python decides which arm there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.model import Alloc, Branch
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def allocate_in_front(job: Job) -> None:
    """Move such allocations, one ``if`` after the other."""

    def step() -> bool:
        for branch, lines in _leaving(job):
            assert isinstance(branch.node, cst.If)
            edits = Edits(job.file.index)
            rest = without(branch.node, lines)
            edits.replace_many(branch.node, [*lines, *([] if rest is None else [rest])])
            job.change("TL119", branch.node, "allocated tiles in front of the `if` behind which they are used")
            job.apply(edits)
            return True
        return False

    until_settled(job, step)


def _leaving(job: Job) -> Iterator[tuple[Branch, list[cst.SimpleStatementLine]]]:
    """Each ``if`` with the allocations in its arms that something outside of it uses."""
    kernel, index = job.kernel, job.file.index
    often = Counter(stmt.buffer.name.partition("#")[0] for stmt in kernel.walk() if isinstance(stmt, Alloc))
    for branch in kernel.walk():
        if not isinstance(branch, Branch) or branch.via or not isinstance(branch.node, cst.If):
            continue
        if branch.cond.loads or job.late.is_late(branch.cond.sym) or isinstance(index.parent(branch.node), cst.If):
            continue
        inside = {id(name) for name in names_in(branch.node)}
        lines: list[cst.SimpleStatementLine] = []
        for stmt in (*branch.then, *branch.orelse):
            if not isinstance(stmt, Alloc) or stmt.via or often[stmt.buffer.name] != 1:
                continue
            line = index.parent(stmt.node)
            outside = any(n.value == stmt.buffer.name and id(n) not in inside for n in names_in(job.located.node.body))
            if outside and isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                lines.append(line)
        if lines:
            yield branch, lines


def without(node: cst.If, lines: list[cst.SimpleStatementLine]) -> cst.If | None:
    """The ``if`` without these lines of its arms; None if nothing is left."""
    changed = node.with_changes(body=_block(node.body, lines))
    if isinstance(node.orelse, cst.Else):
        changed = changed.with_changes(orelse=node.orelse.with_changes(body=_block(node.orelse.body, lines)))
    elif node.orelse is None and all(any(line is gone for gone in lines) for line in node.body.body):
        return None
    return changed


def _block(body: cst.BaseSuite, lines: list[cst.SimpleStatementLine]) -> cst.BaseSuite:
    left = [line for line in body.body if not any(line is gone for gone in lines)]
    return body.with_changes(body=left or [cst.SimpleStatementLine([cst.Pass()])])
