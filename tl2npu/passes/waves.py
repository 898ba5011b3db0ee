"""TL312: ``T.Persistent`` becomes a plain loop over the tasks of a block.

The frame leaves its last wave by ``loop_break()``, a call from which AUTO_CV_COMBINE can tell no core (TL862); the same
loop with a condition has no such call. The tiles are taken row by row, not in groups of columns.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop
from tl2npu.passes.gpu.statements import Names, factor, parse
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def unroll(job: Job) -> None:
    """Write every ``T.Persistent`` of the kernel as a loop of waves with a task in each."""
    while True:
        loop = next((s for s in job.kernel.walk() if isinstance(s, Loop) and s.kind == "persistent"), None)
        if loop is None:
            return
        _write(job, loop)


def may_break(job: Job) -> bool:
    """True if a ``T.Persistent`` of the kernel may have to leave its last wave."""
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "persistent":
            waves = _argument(stmt, 1, "wave_size")
            env = stmt.env
            if waves is None or env is None:
                return True
            total = stmt.ranges[0].extent
            for item in stmt.ranges[1:]:
                total = total * item.extent
            rest = total % job.located.evaluator.sym(waves, env)
            if not rest.is_zero:
                return True
    return False


def _argument(loop: Loop, position: int, name: str) -> cst.BaseExpression | None:
    assert loop.call is not None
    positional = [arg.value for arg in loop.call.args if arg.keyword is None]
    named = {arg.keyword.value: arg.value for arg in loop.call.args if arg.keyword is not None}
    return positional[position] if len(positional) > position else named.get(name)


def _write(job: Job, loop: Loop) -> None:
    node, wave, index = loop.node, _argument(loop, 1, "wave_size"), _argument(loop, 2, "index")
    sizes = [item.stop_node for item in loop.ranges]
    if not isinstance(node, cst.For) or loop.via or wave is None or index is None or None in sizes:
        raise Blocked("TL862", node, "T.Persistent with arguments that are not understood")
    domain = [code(size) for size in sizes if size is not None]
    names = [item.name for item in loop.ranges]
    fresh = Names(job)
    turn, task = fresh.fresh("wave", "wave_id"), fresh.fresh("task", "task_id")
    total = " * ".join(factor(text) for text in domain)
    lines = [f"for {turn} in T.serial(T.ceildiv({total}, {code(wave)})):"]
    lines.append(f"    {task} = {turn} * {factor(code(wave))} + {code(index)}")
    lines.append(f"    if {task} < {total}:")
    rest = task
    for name, text in reversed(list(zip(names[1:], domain[1:], strict=True))):
        lines.append(f"        {name} = {rest} % {factor(text)}")
        rest = f"{rest} // {factor(text)}"
    lines.append(f"        {names[0]} = {rest}")
    (new,) = parse(job, "\n".join(lines) + "\n", node)
    assert isinstance(new, cst.For)
    condition = new.body.body[-1]
    assert isinstance(condition, cst.If)
    assert isinstance(node.body, cst.IndentedBlock)
    inner = condition.body.with_changes(body=[*condition.body.body, *node.body.body], footer=node.body.footer)
    body = new.body.with_changes(body=[new.body.body[0], condition.with_changes(body=inner)])
    edits = Edits(job.file.index)
    edits.replace(node, new.with_changes(body=body, leading_lines=node.leading_lines))
    job.change("TL312", node, "a plain loop over tasks: AUTO_CV_COMBINE cannot read the break of T.Persistent")
    job.apply(edits)
