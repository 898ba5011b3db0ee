"""TL119: ``for i in T.Parallel(1): s[0] = ...`` runs once: its index is that of the only element, ``s[i]``."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Loop, walk
from tl2npu.kernel.symbolic import const
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_ONE = const(1)


def use_index(job: Job) -> None:
    """Write the variable of a parallel loop that runs once for 0 along the axes of one element of its tiles."""
    edits = Edits(job.file.index)
    done: set[int] = set()
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.via:
            continue
        once = [item.name for item in loop.ranges if item.extent == _ONE and item.start.is_zero]
        if not once or len(loop.ranges) > 1:
            continue
        for operand in (access.operand for stmt in walk(loop.body) for access in accesses(stmt) if access.element):
            for dim, size in zip(operand.dims or (), operand.buffer.shape, strict=False):
                zero = isinstance(dim.node, cst.Integer) and dim.lo.is_zero
                if zero and operand.buffer.is_tile and size == _ONE and id(dim.node) not in done:
                    done.add(id(dim.node))
                    edits.replace(dim.node, cst.Name(once[0]))
                    job.change("TL119", dim.node, f"`{once[0]}`, which is 0, for the only element")
    job.apply(edits)
