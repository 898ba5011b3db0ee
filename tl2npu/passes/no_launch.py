"""What a prim_func lacks that launches nothing which can be read."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.style import launches_in
from tl2npu.passes.job import Job
from tl2npu.source.names import Names
from tl2npu.source.tree import calls_in, nodes_of

_BLOCKS = ("block", "sblock", "init", "reads", "writes", "block_attr", "grid")
_TIR = frozenset({*_BLOCKS, "launch_thread", "env_thread", "thread_binding"})
"""How plain TIR says what TileLang says with a launch."""

_SHOWN = 3


def refuse_unlaunched(job: Job, style: str) -> None:
    """Raise :class:`Blocked` for a prim_func of which nothing tells what it is for."""
    if style == "unknown":
        raise Blocked("TL902", job.located.node, no_launch(job.located.node, job.file.names))


def no_launch(node: cst.FunctionDef, names: Names) -> str:
    """Why no kernel can be made of a prim_func."""
    launches = launches_in(node.body, names)
    for statement in nodes_of(node.body, cst.With):
        beside = [item.item for item in statement.items if all(item.item is not call for call in launches)]
        if beside and len(beside) < len(statement.items):
            shown = code(beside[0]).split("\n")[0]
            return f"`with T.Kernel(...)` and `{shown}` are one statement: write a separate `with` for the launch"
    if launches:
        launched = code(launches[0].func)
        return f"`{launched}(...)` does not open a `with` directly in the prim_func: write `with T.Kernel(...)`"
    called = dict.fromkeys(name for call in calls_in(node.body) if (name := _of_tir(call, names)))
    written = f" ({', '.join(f'`{name}`' for name in list(called)[:_SHOWN])})" if called else ""
    return (
        f"a prim_func without `with T.Kernel(...)`: plain TIR{written} cannot be migrated; "
        "write the work of one block below `with T.Kernel(blocks, ...) as bx`, on tiles that `T.copy` loads and stores"
    )


def _of_tir(call: cst.Call, names: Names) -> str:
    return code(call.func) if names.operator(call.func) in _TIR else ""
