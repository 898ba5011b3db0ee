"""TL137: a product that is staged through shared memory on its way to global memory goes there directly.

The cube core stores L0C to global memory itself and converts to the type of the tensor on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.roles import Uses, homes, uses
from tl2npu.kernel.model import Buffer, Copy, Kernel, Stmt, children, walk
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
        if not _follow(kernel.body, use.copied_in, use.stores, source):
            continue
        for copy in use.copied_in:
            plan.remove(copy.node, absorbed=True)
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
    sources = {copy.src.buffer for copy in use.copied_in}
    if len(sources) != 1 or not use.stores:
        return None
    (source,) = sources
    whole = [*(side for copy in use.copied_in for side in (copy.src, copy.dst)), *(store.src for store in use.stores)]
    if not all(operand.is_whole for operand in whole) or source.shape != staged.shape:
        return None
    return source


def _only_stored(use: Uses, staged: Buffer) -> bool:
    """The product is used by nothing but gemms, its fill, stores and copies to this tile."""
    others = [copy for copy in use.copied_out if copy.dst.buffer is not staged]
    return not (use.vector or use.operand or use.loads or use.copied_in or others)


def _follow(body: Sequence[Stmt], copies: Sequence[Copy], stores: Sequence[Copy], source: Buffer) -> bool:
    """Each store is behind a copy of its own block, and between them nothing changes the product."""
    return {id(store) for store in stores} == {id(stmt) for stmt in _stored(body, copies, source) if stmt in stores}


def _stored(body: Sequence[Stmt], copies: Sequence[Copy], source: Buffer) -> Iterator[Stmt]:
    """What runs behind a copy of the same block, as long as the product stays what it was."""
    fresh = False
    for stmt in body:
        if stmt in copies:
            fresh = True
            continue
        for part in children(stmt):
            yield from _stored(part, copies, source)
        if fresh:
            inside = list(walk([stmt]))
            fresh = not any(a.writes and a.operand.buffer is source for s in inside for a in accesses(s))
            yield from inside if fresh else ()


def _destination(store: Copy) -> str:
    return code(store.dst.node)


def _mentions(kernel: Kernel, buffer: Buffer) -> int:
    """Uses other than copies and the allocation (annotations, for example)."""
    others = [stmt for stmt in kernel.walk() if not isinstance(stmt, Copy)]
    return sum(any(a.operand.buffer is buffer for a in accesses(stmt)) for stmt in others)
