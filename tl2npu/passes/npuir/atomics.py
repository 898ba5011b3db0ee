"""TL416: atomic additions add whole tiles to slices of a tensor."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Memory, Op, Operand, walk_with_parents
from tl2npu.passes.gpu.atomics_forms import refuse_atomic
from tl2npu.passes.gpu.element_copies_regions import Lets, region
from tl2npu.passes.gpu.element_copies_tiles import dtype_text, shape_text
from tl2npu.passes.gpu.fills_values import element_type
from tl2npu.passes.gpu.plan import Plan
from tl2npu.passes.gpu.statements import Names, parse
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.statistics_copies import sliced


def to_slices(job: Job) -> None:
    """``T.atomic_add(C[i0, j0], tile)`` and loops over the elements of a tile say by slices what they add to."""
    plan, names = Plan(job), Names(job)
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Op) or stmt.op.kind is not Kind.ATOMIC:
            continue
        refuse_atomic(stmt)
        loops = [above for above in parents if isinstance(above, Loop) and above.kind == "parallel"]
        if stmt.via or len(loops) > 1 or (loops and (loops[0] is not parents[-1] or len(loops[0].body) != 1)):
            raise Blocked("TL416", stmt.node, "an atomic addition of single elements")
        target, value = stmt.args["dst"], stmt.args["value"]
        if not isinstance(target, Operand) or not isinstance(value, Operand):
            raise Blocked("TL416", stmt.node, "an atomic addition of a single number")
        if value.buffer.memory in (Memory.GM, Memory.VAR) or value.buffer.statement is None:
            raise Blocked("TL416", stmt.node, f"`{value.buffer.name}` is no tile")
        text = _of_loop(job, stmt, loops[0], target, value) if loops else _of_tile(stmt, target, value)
        source = value.buffer.name if loops else code(value.node)
        lines = []
        if element_type(job, value.buffer) != element_type(job, target.buffer):
            if not (loops or value.is_whole):
                raise Blocked("TL416", stmt.node, f"`{source}` and `{target.buffer.name}` differ in type")
            cast = names.fresh(f"{value.buffer.name}_cast")
            shape, dtype = shape_text(value.buffer), dtype_text(target.buffer)
            near = value.buffer.statement
            plan.after(near, parse(job, f"{cast} = T.alloc_shared({shape}, {dtype})\n", near))
            lines.append(f"T.copy({source}, {cast})")
            source = cast
        lines.append(f"T.atomic_add({text}, {source})")
        plan.replace(loops[0].node if loops else stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
        job.change("TL416", stmt.node, f"`{source}` is added to `{text}`")
    plan.apply()


def _of_tile(stmt: Op, target: Operand, value: Operand) -> str:
    if value.dims is not None and all(dim.is_point for dim in value.dims):
        raise Blocked("TL416", stmt.node, "an atomic addition of a single number")
    if target.dims is None or any(not dim.is_point for dim in target.dims):
        return code(target.node)
    if not value.is_whole or len(target.dims) < len(value.buffer.shape):
        raise Blocked("TL416", stmt.node, f"`{code(target.node)}` does not say how much is added to")
    return code(sliced(target, value.buffer))


def _of_loop(job: Job, stmt: Op, loop: Loop, target: Operand, value: Operand) -> str:
    """The slices of ``for i, j in T.Parallel(M, N): T.atomic_add(C[i0 + i, j0 + j], tile[i, j])``."""
    assert stmt.env is not None
    found = region(target, loop.ranges, Lets({}), job.file.evaluator, stmt.env)
    own = value.dims or ()
    whole = len(own) == len(loop.ranges) == len(value.buffer.shape) and all(
        dim.lo == item.var and item.extent == size and item.start.is_zero
        for dim, item, size in zip(own, loop.ranges, value.buffer.shape, strict=True)
    )
    if found is None or not whole or list(found.ranges) != list(loop.ranges):
        raise Blocked("TL416", stmt.node, "these elements are added in a way that no tile can stand for")
    assert isinstance(loop.node, cst.For)
    return found.text(slices=True)
