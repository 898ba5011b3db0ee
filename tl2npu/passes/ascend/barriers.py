"""TL763: a barrier in front of a read that AUTO_SYNC does not order behind the write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from tl2npu.kernel.flags.automatic import core_of
from tl2npu.kernel.flags.seen import Conflict
from tl2npu.kernel.model import Loop, Side, Stmt, children, walk
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits


def order(job: Job, conflicts: Iterable[Conflict]) -> None:
    """Write the barriers; a macro's statements stay as they are."""
    edits, done = Edits(job.file.index), set[int]()
    for conflict in conflicts:
        stmt, name = conflict.second.stmt, conflict.second.touch.buffer.name
        line = _line(job, stmt, conflict.second.side)
        if stmt.via or id(line) in done:
            continue
        done.add(id(line))
        why = f"# TL763: AUTO_SYNC orders this behind the last read of `{name}` only, not behind its write"
        barrier = parse(job, f"{why}\nT.barrier_all()", stmt.node)
        edits.replace_many(line, [*barrier, line.with_changes(leading_lines=())])
        text = f"put a barrier in front of this read of `{name}`: AUTO_SYNC does not order it behind the write"
        job.change("TL763", stmt.node, text)
    job.apply(edits)


def _line(job: Job, stmt: Stmt, side: Side) -> cst.CSTNode:
    """The line that the barrier stands in front of, outside of ``T.Parallel``: it is for the core of what is above."""
    block = _block(job.kernel.body, stmt)
    place = next(number for number, one in enumerate(block) if stmt in walk([one]))
    found = next((number for number in range(place, 0, -1) if _last_core(block[number - 1]) is side), place)
    node: cst.CSTNode | None = block[found].node
    while node is not None and not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
        node = job.file.index.parent(node)
    assert node is not None
    return node


def _block(body: Sequence[Stmt], stmt: Stmt) -> Sequence[Stmt]:
    """The statements beside a statement, or beside the ``T.Parallel`` that it is in."""
    for one in body:
        if not (isinstance(one, Loop) and one.kind == "parallel"):
            for inner in children(one):
                if stmt in walk(inner):
                    return _block(inner, stmt)
    return body


def _last_core(stmt: Stmt) -> Side | None:
    """The core of the last statement inside of it that has one."""
    return next((core for one in reversed(list(walk([stmt]))) if (core := core_of(one)) is not None), None)
