"""One accumulator for each result: a memory that holds several in turn becomes several buffers.

An on-chip copy is known to the compiler by the names of its two buffers (R-NAMES), so a tile in L0C can be handed to
one place only.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses, touches
from tl2npu.kernel.flow import Flow, writes_of
from tl2npu.kernel.model import Alloc, Buffer, Copy, Memory, Op, Stmt, children, walk
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned


def separate(job: Job) -> None:
    """Give every result that goes to a place of its own a buffer of its own."""
    flow = Flow(job.kernel)
    taken = mentioned(job.module)
    edits = Edits(job.file.index)
    for buffer in list(job.kernel.buffers.values()):
        if buffer.memory is not Memory.L0C or buffer.index >= 0:
            continue
        webs = _webs(flow, buffer)
        targets = [_targets(web) for web in webs]
        if len(webs) < 2 or any(len(found) != 1 for found in targets) or len(set.union(*targets)) < 2:
            continue
        _rename(job, edits, flow, buffer, webs[1:], taken)
    job.apply(edits)


def _webs(flow: Flow, buffer: Buffer) -> list[list[Stmt]]:
    """The statements that hand one result on to each other, in text order."""
    users = [s for s in flow.kernel.walk() if not children(s) and touches(s, buffer)]
    group = {stmt: stmt for stmt in users}

    def root(stmt: Stmt) -> Stmt:
        while group[stmt] is not stmt:
            stmt = group[stmt]
        return stmt

    for stmt in users:
        if not any(a.reads and a.operand.buffer is buffer for a in accesses(stmt)):
            continue
        for source in _sources(flow, stmt, buffer):
            if source in group:
                group[root(stmt)] = root(source)
    found: dict[Stmt, list[Stmt]] = {}
    for stmt in users:
        found.setdefault(root(stmt), []).append(stmt)
    return sorted(found.values(), key=lambda web: users.index(web[0]))


def _sources(flow: Flow, stmt: Stmt, buffer: Buffer) -> Sequence[Stmt]:
    """The writes whose value a statement may see."""
    for step in flow.before(stmt):
        around = [s for loop in step.left for s, _ in writes_of([loop], buffer)]
        found = [s for s, _ in writes_of([step.stmt], buffer)]
        if found or around:
            return [*found, *around]
    return [s for loop in flow.loops(stmt) for s, _ in writes_of([loop], buffer)]


def _targets(web: Sequence[Stmt]) -> set[Buffer]:
    return {s.dst.buffer for s in web if isinstance(s, Copy)}


def _rename(
    job: Job, edits: Edits, flow: Flow, buffer: Buffer, webs: Sequence[Sequence[Stmt]], taken: set[str]
) -> None:
    alloc = next((s for s in walk(flow.kernel.body) if isinstance(s, Alloc) and s.buffer is buffer), None)
    if alloc is None or not isinstance(alloc.node, cst.Assign):
        return
    lines: list[cst.CSTNode] = [alloc.node]
    for web in webs:
        new = next(n for n in (f"{buffer.name}_{i}" for i in range(2, 1000)) if n not in taken)
        taken.add(new)
        lines.append(alloc.node.with_changes(targets=[cst.AssignTarget(cst.Name(new))]))
        for stmt in web:
            assert isinstance(stmt, (Copy, Op))
            for access in accesses(stmt):
                node = access.operand.node
                name = node.value if isinstance(node, cst.Subscript) else node
                if access.operand.buffer is buffer and isinstance(name, cst.Name) and name not in edits.nodes:
                    edits.replace(name, cst.Name(new))
        job.change("TL301", alloc.node, f"wrote `{new}` for one of the results that share `{buffer.name}`")
    edits.replace_many(alloc.node, lines)
