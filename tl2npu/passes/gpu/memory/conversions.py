"""TL144: the conversion of a vector is not made again where its tile still has it, nor in each run of a loop.

Element-wise statements on half precision convert their operands where they stand. The vectors of a block, as scales and
gates, are the same in all of its loops: a person converts them once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Branch, Buffer, Copy, Kernel, Loop, Memory, Stmt, children, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.source.edits import Edits


def once(job: Job, is_made: Callable[[Buffer], bool]) -> None:
    """Of vectors that go to a tile which holds nothing else; ``is_made``: a pass made the tile."""
    _lift(job, _conversions(job.kernel, is_made))
    _drop(job, _conversions(job.kernel, is_made))


def _conversions(kernel: Kernel, is_made: Callable[[Buffer], bool]) -> list[Copy]:
    """Copies of whole vectors in UB to a tile of another type; nothing else writes these tiles."""
    writers: dict[Buffer, list[Stmt]] = {}
    for stmt in kernel.walk():
        for access in accesses(stmt):
            if access.writes:
                writers.setdefault(access.operand.buffer, []).append(stmt)
    found: list[Copy] = []
    for tile, stmts in writers.items():
        copies = [stmt for stmt in stmts if isinstance(stmt, Copy) and _converts(stmt)]
        if is_made(tile) and len(copies) == len(stmts) and len({copy.src.buffer for copy in copies}) == 1:
            found += copies
    return found


def _converts(copy: Copy) -> bool:
    a, b = copy.src.buffer, copy.dst.buffer
    whole = copy.src.is_whole and copy.dst.is_whole and not copy.options and not copy.via
    vectors = a.memory is b.memory is Memory.UB and a.shape == b.shape and len(a.shape) == 1
    return whole and vectors and a.dtype != b.dtype


def _lift(job: Job, found: Sequence[Copy]) -> None:
    """A conversion more in front of the outermost loop that leaves the vector as it is."""
    lifted: dict[Loop, dict[Buffer, Copy]] = {}
    for stmt, parents in walk_with_parents(job.kernel.body):
        loop = _outermost(stmt, parents) if isinstance(stmt, Copy) and stmt in found else None
        if isinstance(stmt, Copy) and loop is not None:
            lifted.setdefault(loop, {}).setdefault(stmt.dst.buffer, stmt)
    plan = Plan(job)
    for loop, copies in lifted.items():
        for copy in copies.values():
            plan.before(loop.node, [cst.SimpleStatementLine([cst.Expr(copy.call.deep_clone())])])
            job.change("TL144", copy.node, f"`{copy.src.buffer.name}` is converted once, in front of the loop")
    plan.apply()


def _outermost(copy: Copy, parents: Sequence[Stmt]) -> Loop | None:
    found = None
    for parent in reversed(parents):
        plain = isinstance(parent, Loop) and isinstance(parent.node, cst.For) and parent.kind != "parallel"
        if not isinstance(parent, Loop) or not plain or parent.via or copy.src.buffer in _written(parent.body):
            break
        found = parent
    return found


def _written(stmts: Sequence[Stmt]) -> set[Buffer]:
    return {a.operand.buffer for stmt in walk(stmts) for a in accesses(stmt) if a.writes}


def _drop(job: Job, found: Sequence[Copy]) -> None:
    """Those whose tile has the value on every way to them."""
    edits = Edits(job.file.index)
    sources = {copy.dst.buffer: copy.src.buffer for copy in found}

    def run(body: Sequence[Stmt], there: set[Buffer]) -> set[Buffer]:
        for stmt in body:
            if isinstance(stmt, Copy) and stmt in found:
                if stmt.dst.buffer in there:
                    edits.remove(stmt.node)
                    job.change("TL144", stmt.node, f"`{stmt.dst.buffer.name}` still has what this converts")
                    continue
                there = {tile for tile in there if sources[tile] is not stmt.dst.buffer} | {stmt.dst.buffer}
                continue
            changed = _written([stmt])
            kept = {tile for tile in there if sources[tile] not in changed}
            ends = [run(part, kept) for part in children(stmt)]
            there = set.intersection(*ends) if isinstance(stmt, Branch) else kept
        return there

    run(job.kernel.body, set())
    job.apply(edits)
