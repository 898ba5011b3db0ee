"""TL130 to TL135: every buffer gets the memory, or the memories, that its uses need.

The tile that the vector cores use keeps the name; the operand that a gemm reads is ``<name>_l1`` and the product that
it writes ``<name>_l0c`` where a buffer is more than one of them. Only gemms and allocations are rewritten for that;
copies between the homes are inserted where a value passes from one core to the other.
"""

from __future__ import annotations

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Loop, Range
from tl2npu.kernel.symbolic import const, var
from tl2npu.passes.gpu.launch.persistent import grid_at_run_time
from tl2npu.passes.gpu.memory import merged, staging
from tl2npu.passes.gpu.memory.assignment import Assignment
from tl2npu.passes.gpu.memory.closing import Closing, Transfer, open_loop
from tl2npu.passes.gpu.memory.layout import Layout, lay_out
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled


def assign(job: Job) -> None:
    """Give every tile its homes; raises :class:`Blocked` where the flow between the cores cannot be made right."""
    before = job.file, job.edited[:]
    collapsed = [change(job) for change in (merged.copies, staging.collapse)]
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
    closing = Closing(job.spends)
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
