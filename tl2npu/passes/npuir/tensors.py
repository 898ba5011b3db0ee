"""TL414: copies from one tensor in global memory to another go through a tile: the compiler has no other way."""

from __future__ import annotations

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.extents import extents
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse, shape_text
from tl2npu.passes.writing.tiles import dtype_text


def stage(job: Job) -> None:
    """Load into a tile and store it; raises :class:`Blocked` where the extents of the copy cannot be told."""
    plan, names = Plan(job), Names(job)
    launch = job.kernel.launched
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or not (_is_global(stmt.src) and _is_global(stmt.dst)):
            continue
        sizes = extents(job, stmt.src) or extents(job, stmt.dst)
        if sizes is None or stmt.via:
            raise Blocked("TL414", stmt.node, "cannot tell the size of this copy between two global tensors")
        name = names.fresh(f"{stmt.dst.buffer.name}_shared", f"{stmt.dst.buffer.name.lower()}_tile")
        shape = shape_text(job.kernel, sizes)
        first = launch.node.body.body[0]
        node = first.body[0] if hasattr(first, "body") and isinstance(first.body, (list, tuple)) else first
        plan.before(node, parse(job, f"{name} = T.alloc_shared({shape}, {dtype_text(stmt.src.buffer)})\n", stmt.node))
        lines = f"T.copy({code(stmt.src.node)}, {name})\nT.copy({name}, {code(stmt.dst.node)})\n"
        plan.replace(stmt.node, parse(job, lines, stmt.node))
        job.change("TL414", stmt.node, f"wrote the copy to `{stmt.dst.buffer.name}` through a tile")
    plan.apply()


def _is_global(operand: Operand) -> bool:
    return operand.buffer.memory is Memory.GM
