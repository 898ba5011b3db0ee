"""TL115: events of a profiler for CUDA, which only that profiler reads."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.gpu.profiling import EVENTS, PAYLOAD, RANGE
from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.names.leftovers import drop_leftovers
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of

_WHY = "an event for a CUDA profiler"


def drop(job: Job) -> None:
    """Remove marks, and ranges around statements or around the launch."""
    edits = Edits(job.file.index)
    removed: list[cst.CSTNode] = []
    body = job.located.node.body
    removed += [event for event in nodes_of(body, cst.Expr) if _called(job, event.value) in EVENTS]
    removed += [value for value in nodes_of(body, cst.Assign) if _called(job, value.value) == PAYLOAD]
    for small in removed:
        edits.remove(small)
    for block in nodes_of(body, cst.With):
        ranges = [item for item in block.items if item.asname is None and _called(job, item.item) == RANGE]
        removed += ranges
        if len(ranges) == len(block.items):
            edits.unwrap(block)
        else:
            for item in ranges:
                edits.remove(item)
    for node in removed:
        shown = node.item if isinstance(node, cst.WithItem) else node
        job.change("TL115", node, f"`{code(shown)}`: {_WHY}")
    job.apply(edits)
    drop_leftovers(job, removed)


def _called(job: Job, node: cst.BaseExpression) -> str:
    return (job.file.names.resolve(node.func) or "") if isinstance(node, cst.Call) else ""
