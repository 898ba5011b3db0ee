"""TL128: a grid that is only known at run time becomes a loop over tasks in a grid of the device's cores.

The automatic workspaces of hand-overs between the cores have one tile for every block, so the compiler must know how
many blocks there are (measured: g7_cv_*); a loop of a run-time length that both cores run is right (g7_cidtrip,
g9_bid).
"""

from __future__ import annotations

import libcst as cst

from tl2npu.devices import DEVICES
from tl2npu.kernel.access import side_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Copy, Side
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_USUAL_CORES = 24


def loop_over_tasks(job: Job) -> None:
    """Wrap the body of such a kernel, allocations excepted, in ``for task in T.serial(...)``."""
    launch = job.kernel.launch
    assert launch is not None
    if not grid_at_run_time(job) or not _hands_over(job):
        return
    names = Names(job)
    cores = DEVICES[job.options.device].cube_cores or _USUAL_CORES
    block = launch.names[0]
    core, task = names.fresh("core_id", "npu_core_id"), names.fresh("task", "task_id")
    count = names.fresh("core_num", "npu_core_num") if job.located.factory is not None else str(cores)
    (grid,) = (arg.value for arg in launch.call.args if arg.keyword is None)
    body = launch.node.body
    assert isinstance(body, cst.IndentedBlock)
    allocated = {id(stmt.node) for stmt in job.kernel.body if isinstance(stmt, Alloc)}
    kept: list[cst.BaseStatement] = []
    moved: list[cst.BaseStatement] = []
    for line in body.body:
        own = isinstance(line, cst.SimpleStatementLine) and all(id(small) in allocated for small in line.body)
        (kept if own else moved).append(line)
    (head,) = parse(
        job,
        f"for {task} in T.serial(T.ceildiv({code(grid)} - {core}, {count})):\n"
        f"    {block} = {task} * {count} + {core}\n",
        launch.node,
    )
    assert isinstance(head, cst.For)
    assert isinstance(head.body, cst.IndentedBlock)
    loop = head.with_changes(body=head.body.with_changes(body=[*head.body.body, *moved], footer=body.footer))
    edits = Edits(job.file.index)
    edits.replace(body, body.with_changes(body=[*kept, loop], footer=()))
    edits.replace(grid, cst.Name(count) if job.located.factory is not None else cst.Integer(count))
    assert launch.item.asname is not None
    for name in names_in(launch.item.asname):
        if name.value == block:
            edits.replace(name, name.with_changes(value=core))
    job.apply(edits)
    if job.located.factory is not None:
        constants.define(job, [f"{count} = {cores}"])
    job.change(
        "TL128",
        launch.node,
        f"the number of blocks is known at run time only: wrote a persistent loop for {cores} cores",
    )


def grid_at_run_time(job: Job) -> bool:
    """The number of blocks depends on a symbolic size, a scalar parameter or a value that is loaded."""
    launch = job.kernel.launch
    return launch is not None and any(job.late.is_late(size) for size in launch.grid)


def _hands_over(job: Job) -> bool:
    return any(isinstance(stmt, Copy) and side_of(stmt) is Side.BOTH for stmt in job.kernel.walk())
