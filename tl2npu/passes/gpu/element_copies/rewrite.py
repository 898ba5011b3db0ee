"""TL166 to TL171: element loops that move data become copies, and global operands are loaded before they are used."""

from __future__ import annotations

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads, writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Loop, Memory, Op, Stmt, in_parallel, walk, walk_with_parents
from tl2npu.passes.gpu.element_copies import spans
from tl2npu.passes.gpu.element_copies.calls import plain_copies
from tl2npu.passes.gpu.element_copies.columns import split_columns
from tl2npu.passes.gpu.element_copies.loops import LoopWork
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled


def to_copies(job: Job) -> None:
    """``T.Parallel`` loops between global memory and tiles; global operands inside arithmetic are loaded first."""
    split_columns(job)
    plain_copies(job)
    spans.through_tiles(job)

    def step() -> bool:
        found = _next(job)
        if found is not None and not LoopWork(job, *found).carry_out():
            text = "this loop accesses global memory in a pattern that no copy has"
            raise Blocked("TL170", found[0].node, text)
        return found is not None

    until_settled(job, step)


def _next(job: Job) -> tuple[Loop, tuple[Stmt, ...]] | None:
    """The first outermost ``T.Parallel`` with an operand in global memory that is no atomic's."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Loop) or stmt.kind != "parallel":
            continue
        if in_parallel(parents):
            continue
        if touches_global(stmt):
            return stmt, parents
    return None


def touches_global(loop: Loop) -> bool:
    """True if an element of a tensor is read or written in the loop; atomic additions are another pass's."""
    for stmt in walk([loop]):
        if isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
            continue
        if any(operand.buffer.memory is Memory.GM for operand in (*reads(stmt), *writes(stmt))):
            return True
    return False
