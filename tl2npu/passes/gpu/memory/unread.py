"""TL137: work of the vector cores that nobody reads: its tile is written again as a whole first, or never used.

GPU kernels clear their fragments out of habit; on an NPU each fill is an instruction over the whole tile.
"""

from __future__ import annotations

from collections.abc import Set

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.model import Buffer, Copy, Loop, Memory, Op, Side, Stmt, Store, walk
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def drop(job: Job) -> None:
    """Leave them out, and then those that only made their operands."""
    while True:
        edits = Edits(job.file.index)
        received = (stmt for stmt in job.kernel.walk() if isinstance(stmt, Copy) and side_of(stmt) is Side.BOTH)
        landed = {copy.dst.buffer for copy in received}
        for step in Liveness(job.kernel, strict=True).steps:
            if step.writes and step.writes.isdisjoint(step.live) and _only_writes(step.stmt, landed):
                edits.remove(step.stmt.node)
                names = " and ".join(sorted(f"`{tile.name}`" for tile in step.writes))
                job.change("TL137", step.stmt.node, f"nothing reads what this writes to {names}")
        if not edits:
            return
        job.apply(edits)


def _only_writes(stmt: Stmt, landed: Set[Buffer]) -> bool:
    """All that a statement does is to write tiles in UB, from there or from global memory.

    What reads a tile that comes from the other core makes this core wait for it.
    """
    inside = list(walk([stmt]))
    plain = all(
        isinstance(one, (Copy, Store))
        or (isinstance(one, Loop) and one.kind == "parallel")
        or (isinstance(one, Op) and one.op.kind in (Kind.FILL, Kind.TILE, Kind.REDUCE))
        for one in inside
    )
    if not plain or any(one.via for one in inside):
        return False
    found = [access for one in inside for access in accesses(one)]
    allowed = (Memory.UB, Memory.GM)
    if any(access.reads and access.operand.buffer in landed for access in found):
        return False
    return all(access.operand.buffer.memory in (allowed[:1] if access.writes else allowed) for access in found)
