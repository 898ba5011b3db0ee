"""TL137: fills of tiles that are written again as a whole before anyone reads them, or that are never used.

GPU kernels clear their fragments out of habit; on an NPU each fill is an instruction over the whole tile. Other
work that an author does for nothing stays; of what passes wrote, nothing that nobody reads does.
"""

from __future__ import annotations

from collections.abc import Callable

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.memory.liveness import Liveness, Step
from tl2npu.kernel.model import Buffer, Copy, Loop, Memory, Op, Stmt
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def drop(job: Job, is_made: Callable[[Buffer], bool]) -> None:
    """Leave them out; ``is_made``: a pass made the tile."""
    edits = Edits(job.file.index)
    found = [(stmt, access) for stmt in job.kernel.walk() for access in accesses(stmt)]
    read = {access.operand.buffer for _, access in found if access.reads}
    stored = {access.operand.buffer for stmt, access in found if access.writes and not _is_fill(stmt)}
    landed = {stmt.dst.buffer for stmt, _ in found if isinstance(stmt, Copy) and stmt.src.buffer.memory is Memory.L0C}
    for step in Liveness(job.kernel, strict=True).steps:
        needless = _is_fill(step.stmt) or (_is_work(step, landed) and all(map(is_made, step.writes)))
        if needless and step.writes.isdisjoint(step.live | (stored - read)):
            edits.remove(step.stmt.node)
            job.change("TL137", step.stmt.node, f"nothing reads what this writes to {_names(step.writes)}")
    job.apply(edits)


def _is_fill(stmt: Stmt) -> bool:
    """A fill of a tile in UB, written in the kernel itself."""
    if not isinstance(stmt, Op) or stmt.op.kind is not Kind.FILL or stmt.via:
        return False
    return all(operand.buffer.memory is Memory.UB for _, operand in stmt.operands)


def _is_work(step: Step, landed: set[Buffer]) -> bool:
    """Work on tiles in UB, one statement or a loop that goes over a tile, which takes no product from the cube core."""
    inside = [step.stmt, *step.inner]
    touched = {access.operand.buffer for stmt in inside for access in accesses(stmt)}
    return (
        bool(step.writes)
        and isinstance(step.stmt, Loop if step.inner else (Copy, Op))
        and not any(stmt.via for stmt in inside)
        and all(buffer.memory is Memory.UB and buffer not in landed for buffer in touched)
    )


def _names(tiles: set[Buffer]) -> str:
    return " and ".join(sorted(f"`{tile.name}`" for tile in tiles))
