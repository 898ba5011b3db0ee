"""TL130 to TL135: every buffer gets the memory, or the memories, that its uses need.

The tile that the vector cores use keeps the name; the operand that a gemm reads is ``<name>_l1`` and the product that
it writes ``<name>_l0c`` where a buffer is more than one of them. Only gemms and allocations are rewritten for that;
copies between the homes are inserted where a value passes from one core to the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.memory.roles import Uses, homes, uses
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Range, Stmt, children, walk
from tl2npu.kernel.symbolic import const, var
from tl2npu.passes.gpu.launch.persistent import grid_at_run_time
from tl2npu.passes.gpu.memory import merged
from tl2npu.passes.gpu.memory.assignment import Assignment
from tl2npu.passes.gpu.memory.closing import Closing, Transfer, open_loop
from tl2npu.passes.gpu.memory.layout import Layout, lay_out
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import parse

# TL137: a product that is staged through shared memory on its way to global memory goes there directly.
#
# The cube core stores L0C to global memory itself and converts to the type of the tensor on the way.


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
            plan.replace(store.node, parse(job, f"T.copy({source.name}, {code(store.dst.node)})", store.node))
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


def _mentions(kernel: Kernel, buffer: Buffer) -> int:
    """Uses other than copies and the allocation (annotations, for example)."""
    others = [stmt for stmt in kernel.walk() if not isinstance(stmt, Copy)]
    return sum(any(a.operand.buffer is buffer for a in accesses(stmt)) for stmt in others)


def assign(job: Job) -> None:
    """Give every tile its homes; raises :class:`Blocked` where the flow between the cores cannot be made right."""
    before = job.file, job.edited[:]
    collapsed = [change(job) for change in (merged.copies, collapse)]
    try:
        layout = _settle(job)
    except Blocked:
        if not any(collapsed):
            raise
        job.restore(*before)  # the way through UB may be what orders a loop
        layout = _settle(job)
    job.has_spent |= bool(layout.tokens or layout.zero_products)
    Assignment(job, layout).write()


def _settle(job: Job) -> Layout:
    """Repeat the layout until every loop that hands tiles over does so in both directions (measured: g9_*)."""
    closing = Closing(job.ways.spends)
    around = _task_loop(job)
    layouts: list[Layout] = []

    def step() -> bool:
        layouts[:] = [lay_out(job, closing)]
        return _repaired(layouts[0], closing, around)

    until_settled(job, step, lambda: closing.decisions)
    return layouts[0]


def _repaired(layout: Layout, closing: Closing, around: tuple[Loop, ...]) -> bool:
    """Decide on one more repair, which the next layout has to follow; False if none is needed."""
    forced = {chain.buffer.name for chain in layout.chains if chain.added and not layout.homes[chain.buffer].ub}
    if forced:
        closing.routed |= forced
        return True
    transfers = [Transfer(item.anchor, layout.places, False, around) for item in layout.to_l1]
    transfers += [
        Transfer(chain.anchor, layout.places, True, around) for chain in layout.chains if layout.homes[chain.buffer].ub
    ]
    transfers += [
        Transfer(copy, layout.places, True, around)
        for buffer, use in layout.uses.items()
        if layout.homes[buffer].l0c and not layout.homes[buffer].ub
        for copy in use.copied_out
    ]
    transfers += [
        Transfer(copy, layout.places, False, around)
        for buffer, use in layout.uses.items()
        if layout.homes[buffer].l1 and not layout.homes[buffer].ub
        for copy in use.copied_in
    ]
    transfers += [Transfer(last, layout.places, way, around) for last in closing.tokens for way in (True, False)]
    transfers += [Transfer(zero, layout.places, False, around) for zero in layout.zero_products]
    loop = open_loop(transfers)
    if loop is None:
        return False
    if not closing.close(loop, layout.chains, layout.uses):
        direction = "from the cube to the vector cores" if loop.to_vector else "from the vector cores to the cube"
        text = f"this loop transfers tiles only {direction}; the compiler does not synchronise that"
        raise Blocked("TL135", loop.loop.node, text)
    return True


def _task_loop(job: Job) -> tuple[Loop, ...]:
    """The loop that :mod:`tl2npu.passes.gpu.launch.persistent` will put around the body."""
    kernel = job.kernel
    if kernel.launch is None or not grid_at_run_time(job):
        return ()
    tasks = Range("task", var("task@0"), const(0), var("tasks@0"), None)
    return (Loop(kernel.launch.node, "serial", (tasks,), kernel.body, None),)
