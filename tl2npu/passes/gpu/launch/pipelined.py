"""TL139: ``T.Pipelined`` stays where the cube core alone runs the loop, or by TL612; elsewhere it becomes ``T.serial``.

Measured: a pure cube loop is right with any number of stages (g4_init_pipe*); a loop with hand-overs loses the
iterations behind the last whole group of stages (g9_rem32), and needs bounds that the compiler knows.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import side_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Let, Loop, Side, children, walk
from tl2npu.kernel.stages import changed_variables, count_of_statements
from tl2npu.passes.gpu.launch import stages
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits

_FEWEST = 2


def limit(job: Job) -> bool:
    """Rewrite every pipelined loop that the NPU would not run as the GPU does; True if one has stages of both cores."""
    kept, reasons = (None, {}) if job.ways.in_turns else stages.keep(job)
    job.staged = kept is not None
    edits = Edits(job.file.index)
    for number, stmt in enumerate(stages.pipelined_loops(job)):
        why = (reasons.get(number) or _why_not(job, stmt)) if number != kept else None
        if why is None:
            continue
        assert stmt.call is not None
        assert isinstance(stmt.node, cst.For)
        bounds = [item for item in (stmt.ranges[0].start_node, stmt.ranges[0].stop_node) if item is not None]
        text = f"T.serial({', '.join(code(item) for item in bounds)})"
        edits.replace(stmt.call, expression(job, text, stmt.call))
        job.change("TL139", stmt.node, f"T.Pipelined -> T.serial: {why}")
    job.apply(edits)
    return job.staged


def _why_not(job: Job, loop: Loop) -> str | None:
    inside = list(walk(loop.body))
    if count_of_statements(loop.body) < _FEWEST:
        return "it has fewer than two statements"
    sides = {side_of(stmt) for stmt in inside if not children(stmt) and not isinstance(stmt, Let)}
    if Side.VECTOR in sides or Side.BOTH in sides:
        return "vector cores work in it"
    if any(isinstance(stmt, Loop) and stmt.kind == "pipelined" for stmt in inside):
        return "pipelines do not nest"
    if any(isinstance(stmt, Branch) for stmt in inside):
        return "its statements differ between iterations"
    if changed_variables(job.kernel, loop):
        return "a variable changes in it"
    item = loop.ranges[0]
    if any("@" in name for name in (*item.extent.variables(), *item.start.variables())) or loop.loads:
        return "its bounds are known at run time only"
    return None
