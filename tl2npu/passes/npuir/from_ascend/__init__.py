"""From Ascend Developer mode to AscendNPU IR: destinations last, `[M, 1]` statistics, no hand-overs."""

from __future__ import annotations

from tl2npu.passes.ascend import waves
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.from_ascend import convert, counterparts, fuse, hand_overs, order, statistics, target


def rewrite(job: Job) -> None:
    """A kernel without ``vid``, workspaces and flags, in the words of AscendNPU IR; its launch and its tiles."""
    counterparts.refuse(job)
    waves.to_loops(job)
    fuse.loops(job)
    order.put_in_order(job)
    hand_overs.refuse_unwritten(job)
    hand_overs.collapse(job)
    statistics.add_axes(job)
    convert.statements(job)
    target.allocations(job)
    target.launch(job)
