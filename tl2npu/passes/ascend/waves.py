"""TL119, TL312, TL432: ``T.Persistent`` becomes a plain loop over the tasks of a block.

Ascend C: the frame leaves its last wave by ``loop_break()``, a call from which AUTO_CV_COMBINE can tell no core
(TL862); the same loop with a condition has no such call, and as many waves in every block. AscendNPU IR does not have
the frame, and needs no condition where each block counts its own waves. The tiles are taken row by row, not in groups
of columns.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.loops import fills_every_wave, wave_argument
from tl2npu.kernel.model import Loop
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits

_WRITTEN = ("serial", "ceildiv")


def may_break(job: Job) -> bool:
    """True if a ``T.Persistent`` of the kernel may have to leave its last wave."""
    return any(not fills_every_wave(loop, job.located.evaluator) for loop in _frames(job))


def unroll(job: Job) -> None:
    """TL312: a loop of waves with a task in each, and a condition where a block may have none."""
    _rewrite_all(
        job, "TL312", "wrote a plain loop over tasks: AUTO_CV_COMBINE does not support the break of T.Persistent", True
    )


def to_loops(job: Job, rule: str = "TL432") -> None:
    """A loop over the waves in which a block has a task; TL119 in a GPU kernel."""
    _rewrite_all(job, rule, "wrote a loop over the tasks of a block", False)


def _frames(job: Job) -> list[Loop]:
    return [stmt for stmt in job.kernel.walk() if isinstance(stmt, Loop) and stmt.kind == "persistent"]


def _rewrite_all(job: Job, rule: str, message: str, guarded: bool) -> None:
    changed = False
    while frames := _frames(job):
        _rewrite(job, frames[0], guarded)
        job.change(rule, frames[0].node, message)
        changed = True
    if changed:
        wanted = {name for name in _WRITTEN if imports.spelling(job, name, job.located.node) == name}
        imports.complete(job, wanted, {"Persistent"})


def _rewrite(job: Job, loop: Loop, guarded: bool) -> None:
    node, wave, index = loop.node, wave_argument(loop, "wave_size"), wave_argument(loop, "index")
    sizes = [code(item.stop_node) for item in loop.ranges if item.stop_node is not None]
    if not isinstance(node, cst.For) or loop.via or wave is None or index is None or len(sizes) < len(loop.ranges):
        raise Blocked("TL862" if guarded else "TL428", node, "cannot write this `T.Persistent` as a plain loop")
    assert isinstance(node.body, cst.IndentedBlock)
    fresh = Names(job)
    turn, task = fresh.fresh("wave", "wave_id"), fresh.fresh("task", "task_id")
    total = " * ".join(factor(size) for size in sizes)
    left = total if guarded else f"{total} - {factor(code(index))}"
    lines = [f"for {turn} in T.serial(T.ceildiv({left}, {code(wave)})):"]
    lines.append(f"    {task} = {turn} * {factor(code(wave))} + {code(index)}")
    lines += [f"    if {task} < {total}:"] if guarded else []
    step = "        " if guarded else "    "
    for place, item in enumerate(loop.ranges):
        below = " * ".join(factor(size) for size in sizes[place + 1 :])
        value = f"{task} // {factor(below)}" if below else task
        lines.append(f"{step}{item.name} = {value}" + (f" % {factor(sizes[place])}" if place else ""))
    (new,) = parse(job, "\n".join(lines) + "\n", node)
    assert isinstance(new, cst.For)
    body = _with_body(new.body, node.body)
    edits = Edits(job.file.index)
    edits.replace(node, new.with_changes(body=body, leading_lines=node.leading_lines))
    job.apply(edits)


def _with_body(head: cst.BaseSuite, body: cst.IndentedBlock) -> cst.BaseSuite:
    """The new lines, followed by the old statements in the innermost block."""
    *above, last = head.body
    if not isinstance(last, cst.If):
        return body.with_changes(body=[*head.body, *body.body])
    inner = last.body.with_changes(body=[*last.body.body, *body.body], footer=body.footer)
    return head.with_changes(body=[*above, last.with_changes(body=inner)])
