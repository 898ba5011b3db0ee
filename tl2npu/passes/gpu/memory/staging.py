"""TL137: a product that is staged through shared memory on its way to global memory goes there directly.

The cube core stores L0C to global memory itself and converts to the type of the tensor on the way.
"""

from __future__ import annotations

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.roles import Uses, homes, uses
from tl2npu.kernel.model import Alloc, Buffer, Copy, Kernel
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import parse


def collapse(job: Job) -> bool:
    """``T.copy(acc, staged); T.copy(staged, C[...])`` becomes ``T.copy(acc, C[...])``; True if there was one."""
    plan = Plan(job)
    kernel = job.kernel
    found = uses(kernel)
    needed = homes(found, frozenset())
    for staged, use in found.items():
        source = _source(staged, use)
        if source is None or not needed[source].l0c or not _only_stored(found[source], staged):
            continue
        if not _follow(kernel, use.copied_in[0], use.stores, source):
            continue
        plan.remove(use.copied_in[0].node)
        for store in use.stores:
            plan.replace(store.node, parse(job, f"T.copy({source.name}, {_destination(store)})", store.node))
            job.change("TL137", store.node, f"stored `{source.name}` directly, without `{staged.name}`")
        if staged.statement is not None and _mentions(kernel, staged) == 0:
            plan.remove(staged.statement)
    found_any = bool(plan)
    plan.apply()
    return found_any


def _source(staged: Buffer, use: Uses) -> Buffer | None:
    """The product that a tile does nothing but stage."""
    if use.operand or use.product or use.vector or use.zeroed or use.loads or use.copied_out:
        return None
    if len(use.copied_in) != 1 or not use.stores:
        return None
    copy = use.copied_in[0]
    whole = [copy.src, copy.dst, *(store.src for store in use.stores)]
    if not all(operand.is_whole for operand in whole) or copy.src.buffer.shape != staged.shape:
        return None
    return copy.src.buffer


def _only_stored(use: Uses, staged: Buffer) -> bool:
    """The product is used by nothing but gemms, its fill, stores and this one copy."""
    others = [copy for copy in use.copied_out if copy.dst.buffer is not staged]
    return not (use.vector or use.operand or use.loads or use.copied_in or others)


def _follow(kernel: Kernel, copy: Copy, stores: list[Copy], source: Buffer) -> bool:
    """Between the copy and the stores nothing changes the product."""
    after = False
    left = {id(store) for store in stores}
    for stmt in kernel.walk():
        if stmt is copy:
            after = True
        elif after and id(stmt) in left:
            left.discard(id(stmt))
            if not left:
                return True
        elif after and any(a.writes and a.operand.buffer is source for a in accesses(stmt)):
            return False
    return False


def _destination(store: Copy) -> str:
    return code(store.dst.node)


def _mentions(kernel: Kernel, buffer: Buffer) -> int:
    """Uses other than copies and the allocation (annotations, for example)."""
    return sum(
        1
        for stmt in kernel.walk()
        if not isinstance(stmt, (Alloc, Copy)) and any(a.operand.buffer is buffer for a in accesses(stmt))
    )
