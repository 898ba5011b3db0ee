"""TL120: a value that is assigned in the arms of an ``if`` and used behind it.

The NPU's front end gives each arm a scope of its own: the name is not known outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Branch, Let, Loop, Memory, Stmt, children, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.source.tree import mentioned, names_in


def refuse_leaks(job: Job) -> None:
    """Raise :class:`Blocked` for the first such name that is no ``T.alloc_var``."""
    for stmt, used in leaks(job):
        raise Blocked("TL120", stmt.node, f"`{min(used)}` is assigned in the branches of this `if` and used after it")


def leaks(job: Job) -> Iterator[tuple[Branch, set[str]]]:
    """Every ``if`` with such names, and the names; an outer one before those in its arms."""
    kernel = job.kernel
    variables = {buffer.name for buffer in kernel.buffers.values() if buffer.memory is Memory.VAR}
    for stmt, parents in walk_with_parents(kernel.body):
        if not isinstance(stmt, Branch) or (parents and isinstance(parents[-1], Branch) and stmt in parents[-1].orelse):
            continue
        assigned = {inner.name for inner in walk([stmt]) if isinstance(inner, Let)} - variables
        found = _used(_behind(kernel.body, stmt), assigned)
        if found:
            yield stmt, found


def _used(body: Sequence[Stmt], assigned: set[str]) -> set[str]:
    """Those names that the statements use before they give them a value of their own."""
    found: set[str] = set()
    assigned = set(assigned)
    for stmt in body:
        inner = assigned
        if isinstance(stmt, Loop) and isinstance(stmt.node, cst.For):
            nodes: list[cst.CSTNode] = [stmt.node.iter]
            inner = assigned - mentioned(stmt.node.target)
        elif isinstance(stmt, Branch) and isinstance(stmt.node, cst.If):
            nodes = [stmt.node.test]
        else:
            nodes = [stmt.value.node if isinstance(stmt, Let) else stmt.node]
        found |= {name.value for node in nodes for name in names_in(node)} & assigned
        if isinstance(stmt, (Loop, Branch)):
            for block in children(stmt):
                found |= _used(block, inner)
        elif isinstance(stmt, Let):
            assigned.discard(stmt.name)
    return found


def _behind(body: list[Stmt], branch: Stmt) -> list[Stmt]:
    """The statements that follow a branch in its own list."""
    for number, stmt in enumerate(body):
        if stmt is branch:
            return body[number + 1 :]
        for inner in children(stmt):
            found = _behind(inner, branch)
            if found or any(item is branch for item in inner):
                return found
    return []
