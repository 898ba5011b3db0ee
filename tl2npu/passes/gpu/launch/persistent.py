"""TL128, TL620: a loop over tasks in a grid of the device's cores.

The automatic workspaces of hand-overs between the cores have one tile for every block, so the compiler must know how
many blocks there are (measured: g7_cv_*); a loop of a run-time length that both cores run is right (g7_cidtrip,
g9_bid). Other grids become such loops where the user asks for it: a core starts its blocks one after the other, about
0.1 us each (tilelang-ascend #1261).

Task ``t`` is done by block ``t % cores`` in its turn ``t // cores``: each task once, by one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.devices import DEVICES, MOST_BLOCKS
from tl2npu.kernel.access import accesses, hands_over, side_of
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.assertions import largest
from tl2npu.kernel.factories.blocks import asked_for
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Alloc, Buffer, Copy, Kernel, Launch, Loop, Memory, Op, Side, Stmt, Store, walk
from tl2npu.kernel.symbolic import Var
from tl2npu.passes.gpu.launch.grid import is_outside
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in
from tl2npu.source.tree import walk as nodes

_USUAL_CORES = 24


def loop_over_tasks(job: Job) -> None:
    """Wrap the body of such a kernel, allocations excepted, in ``for task in T.serial(...)``."""
    launch = job.kernel.launched
    cores = DEVICES[job.options.device].cube_cores or _USUAL_CORES
    if grid_at_run_time(job) and hands_over(job.kernel):
        _write(job, launch, _blocks(job, launch, cores))
        text = "the number of blocks is known at run time only: wrote a persistent loop in a block for each core"
        job.change("TL128", launch.node, text)
        return
    asked = _asked(job, launch)
    most = max((tasks for tasks in asked if tasks is not None), default=0)
    tasks, limit = code(_grid(launch)), f"a launch has at most {MOST_BLOCKS:,}"
    limited = largest(job.file, job.located).get(tasks, MOST_BLOCKS + 1) <= MOST_BLOCKS
    unlimited = None in asked and most <= MOST_BLOCKS and not limited and _is_rows(job, launch)
    if most > MOST_BLOCKS:
        why = f"{most:,} blocks, and {limit}: "
    elif unlimited:
        why = f"no call limits the `{tasks}` blocks, and {limit}: "
    elif job.options.fixed_core and (None in asked or most > cores):
        why = ""
    else:
        return
    if job.ways.loops and _may_loop(job, launch):
        _tell_and_write(job, launch, cores, why)
    elif unlimited and is_outside(job, _grid(launch)):
        job.note("TL620", launch.node, f"{why}wrote an assertion", "info", done=True)
        constants.define(job, [f'assert {tasks} <= {MOST_BLOCKS}, "{limit} blocks"'])


def _asked(job: Job, launch: Launch) -> list[int | None]:
    """How many blocks each known call of the factory asks for."""
    return asked_for(launch, (caller.values for caller in callers_of(job.file, job.located, shapes=True)))


def limit(job: Job) -> None:
    """The same for kernels that were written for an NPU, only where a known call asks for too many blocks."""
    launch = job.kernel.launch
    if launch is None or not job.ways.loops or not launch.names or launch.names[0] == "_" or len(launch.grid) != 1:
        return
    most = max((tasks for tasks in _asked(job, launch) if tasks is not None), default=0)
    if most > MOST_BLOCKS and _may_loop(job, launch):
        cores = DEVICES[job.options.device].cube_cores or _USUAL_CORES
        _tell_and_write(job, launch, cores, f"{most:,} blocks, and a launch has at most {MOST_BLOCKS:,}: ")


def _tell_and_write(job: Job, launch: Launch, cores: int, why: str) -> None:
    text = f"wrote a loop over `{code(_grid(launch))}` tasks in a block for each core"
    if why:
        job.note("TL620", launch.node, why + text, "info", done=True)
    _write(job, launch, _blocks(job, launch, cores))
    job.has_looped = True
    job.change("TL620", launch.node, text)


def _blocks(job: Job, launch: Launch, cores: int) -> str:
    """How many blocks to launch: as many as the device has cores, and no more than there are tasks."""
    if job.located.factory is None:
        return str(cores)
    torch = job.file.names.spell("torch", launch.node)
    asked = f'int({torch}.npu.get_device_properties("npu").cube_core_num)' if torch is not None else str(cores)
    return asked if grid_at_run_time(job) else f"min({code(_grid(launch))}, {asked})"


def _grid(launch: Launch) -> cst.BaseExpression:
    (grid,) = (arg.value for arg in launch.call.args if arg.keyword is None)
    return grid


def _is_rows(job: Job, launch: Launch) -> bool:
    """A block for each of the entries of an axis of a tensor: there are commonly more of them than blocks."""
    grid = launch.grid[0]
    extents = [extent for buffer in job.kernel.params for extent in buffer.shape]
    return isinstance(grid.atom, Var) and grid in extents


def _may_loop(job: Job, launch: Launch) -> bool:
    """The number of blocks can be worked out beside the kernel, and no block leaves off in the middle."""
    node = job.located.node
    if job.file.names.resolve(cst.Name("min"), node) is not None:
        return False
    if any(type(inner) is cst.Return for inner in nodes(launch.node.body)):
        return False
    return grid_at_run_time(job) or job.located.factory is None or is_outside(job, _grid(launch))


def _write(job: Job, launch: Launch, cores: str) -> None:
    """The loop. ``cores``: how many blocks are launched, for the factory to work out."""
    names = Names(job)
    block = launch.names[0]
    core, task = names.fresh("core_id", "npu_core_id"), names.fresh("task", "task_id")
    count = names.fresh("core_num", "npu_core_num") if job.located.factory is not None else cores
    grid = _grid(launch)
    body = cst.ensure_type(launch.node.body, cst.IndentedBlock)
    allocated = {id(stmt.node) for stmt in job.kernel.body if isinstance(stmt, Alloc)}
    kept: list[cst.BaseStatement] = []
    moved: list[cst.BaseStatement] = []
    for line in body.body:
        own = isinstance(line, cst.SimpleStatementLine) and all(id(small) in allocated for small in line.body)
        (kept if own else moved).append(line)
    first = _once_for_all(job.kernel, moved, block)
    kept += [line for line in moved if id(line) in first]
    moved = [line for line in moved if id(line) not in first]
    (head,) = parse(
        job,
        f"for {task} in T.serial(T.ceildiv({code(grid)} - {core}, {count})):\n"
        f"    {block} = {task} * {count} + {core}\n",
        launch.node,
    )
    assert isinstance(head, cst.For)
    assert isinstance(head.body, cst.IndentedBlock)
    loop = head.with_changes(body=head.body.with_changes(body=[*head.body.body, *moved], footer=body.footer))
    above = getattr(moved[0], "leading_lines", ()) if moved else ()
    if above and not any(line.comment for line in above):  # the paragraph begins with the loop
        loop = loop.with_deep_changes(moved[0], leading_lines=()).with_changes(leading_lines=above)
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


def grid_at_run_time(job: Job) -> bool:
    """The number of blocks depends on a symbolic size, a scalar parameter or a value that is loaded."""
    launch = job.kernel.launch
    return launch is not None and any(job.late.is_late(size) for size in launch.grid)


# What a loop over tasks need not do again for each of them: loads and values that are the same in every block.


def _once_for_all(kernel: Kernel, lines: Sequence[cst.BaseStatement], block: str) -> set[int]:
    """The ids of those lines of a launch that may stand in front of a loop over its blocks.

    They fill tiles on the chip that nothing else fills, from what does not depend on the block. Hand-overs between the
    cores stay where they are: both sides have to be met as often.
    """
    own: dict[int, list[Stmt]] = {}
    for stmt in kernel.body:
        for line in lines:
            if line is stmt.node or (isinstance(line, cst.SimpleStatementLine) and stmt.node in line.body):
                own.setdefault(id(line), []).append(stmt)
    bound = {block}
    found: set[int] = set()
    for line in lines:
        inside = list(walk(own.get(id(line), [])))
        if inside and all(map(_only_fills, inside)) and bound.isdisjoint(name.value for name in names_in(line)):
            found.add(id(line))
        else:
            bound |= assigned_names(line)
    before = -1
    while before != len(found):
        before = len(found)
        written = {buffer for line in lines if id(line) not in found for buffer, writes in _uses(own, line) if writes}
        found = {id(line) for line in lines if id(line) in found and all(b not in written for b, _ in _uses(own, line))}
    return found


def _only_fills(stmt: Stmt) -> bool:
    if stmt.via or not isinstance(stmt, (Copy, Op, Store, Loop)) or side_of(stmt) is Side.BOTH:
        return False
    written = [access.operand.buffer.memory for access in accesses(stmt) if access.writes]
    return isinstance(stmt, Loop) or (bool(written) and not {Memory.GM, Memory.VAR} & {*written})


def _uses(own: dict[int, list[Stmt]], line: cst.BaseStatement) -> Iterator[tuple[Buffer, bool]]:
    for stmt in walk(own.get(id(line), [])):
        for access in accesses(stmt):
            yield access.operand.buffer, access.writes
