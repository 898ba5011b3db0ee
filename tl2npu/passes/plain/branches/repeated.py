"""TL119: a value of one ``if use_g:`` that only later arms of the same condition use is computed in each of them.

The NPU's front end forgets the names of an arm behind it, also where Python decides which arm there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flow import Flow
from tl2npu.kernel.model import Branch, Let, Stmt, walk
from tl2npu.passes.job import Job
from tl2npu.passes.plain.branches.leaks import leaks
from tl2npu.passes.writing.statements import parse
from tl2npu.passes.writing.substitute import Unclear, substituted
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned


def compute_again(job: Job) -> None:
    """Write such values a second time, where nothing that they depend on has changed."""
    edits = Edits(job.file.index)
    done: set[int] = set()
    for stmt, used in leaks(job):
        if stmt.via or any(id(inner) in done for inner in walk([stmt])):
            continue
        found = [_again(job, stmt, name) for name in sorted(used)]
        places: dict[int, tuple[Branch, list[str]]] = {}
        for name, item in zip(sorted(used), found, strict=True):
            for later in item[1] if item is not None else ():
                text = f"{name} = {code(item[0])}" if item is not None else ""
                places.setdefault(id(later), (later, []))[1].append(text)
        if None in found:
            continue
        for later, texts in places.values():
            assert isinstance(later.node, cst.If)
            done |= {id(inner) for inner in walk([later])}
            lines = [line for text in texts for line in parse(job, text, stmt.node)]
            first = later.node.body.body[0]
            edits.replace_many(first, [*lines, first])
        names = ", ".join(f"`{name}`" for name in sorted(used))
        job.change("TL119", stmt.node, f"computed {names} again in each later `if` that uses it")
    job.apply(edits)


def _again(job: Job, stmt: Branch, name: str) -> tuple[cst.BaseExpression, list[Branch]] | None:
    """The value of a name that one statement of an arm binds, and the later arms that use it."""
    condition = stmt.cond
    lets = [inner for inner in job.kernel.walk() if isinstance(inner, Let) and inner.name == name]
    if len(lets) != 1 or lets[0] not in stmt.then or condition.loads or job.late.is_late(condition.sym):
        return None
    block = Flow(job.kernel).block(stmt)
    behind = block[block.index(stmt) + 1 :]
    users = [later for later in behind if name in mentioned(later.node)]
    arms = [later for later in users if isinstance(later, Branch) and code(later.cond.node) == code(condition.node)]
    bound = {inner.name for inner in job.kernel.walk() if isinstance(inner, Let)}
    if len(arms) < len(users) or bound & mentioned(condition.node):
        return None
    if any(name in mentioned(inner.node) for arm in arms for inner in arm.orelse) or not _in_plain_blocks(arms):
        return None
    value = _closed(stmt.then[: stmt.then.index(lets[0])], lets[0])
    if value is None:
        return None
    between = [*stmt.then, *block[block.index(stmt) + 1 : block.index(arms[-1]) + 1]]
    loaded = {operand.buffer for inner in walk(stmt.then) if isinstance(inner, Let) for operand in reads(inner)}
    used = mentioned(value)
    after = between[between.index(lets[0]) + 1 :]
    changed = {operand.buffer for inner in walk(after) for operand in writes(inner)}
    renamed = {inner.name for inner in walk(after) if isinstance(inner, Let)}
    return None if loaded & changed or used & renamed else (value, arms)


def _in_plain_blocks(arms: Sequence[Branch]) -> bool:
    return all(isinstance(arm.node, cst.If) and isinstance(arm.node.body, cst.IndentedBlock) for arm in arms)


def _closed(before: Sequence[Stmt], let: Let) -> cst.BaseExpression | None:
    """The value with the values of names that the arm binds before in their place."""
    value: cst.CSTNode = let.value.node
    try:
        for stmt in reversed(before):
            if isinstance(stmt, Let):
                value = substituted(value, {stmt.name: stmt.value.node})
    except Unclear:
        return None
    return value if isinstance(value, cst.BaseExpression) else None
