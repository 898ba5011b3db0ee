"""TL605: functions that callers give a factory, ``make(N, relu)``, and that the kernel calls by a parameter.

The instructions of the kernel follow from what the function computes, and one text stands for all of them.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.model import Loop, walk_with_parents
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in


def refuse_functions(job: Job) -> None:
    """Raise :class:`Blocked` for a function among the parameters that the kernel calls with its data."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if stmt.via or not isinstance(stmt.node, cst.BaseSmallStatement):
            continue
        in_loop = any(isinstance(parent, Loop) and parent.kind == "parallel" for parent in parents)
        for call in calls_in(stmt.node):
            owner = _owner(job, stmt.env, call.func) if isinstance(call.func, cst.Name) else None
            if owner is not None and (in_loop or job.file.evaluator.buffers_in(call, stmt.env)):
                assert isinstance(call.func, cst.Name)
                text = f"the kernel calls `{call.func.value}`, a function that the callers of `{owner.name.value}` give"
                raise Blocked("TL605", call, text)


def _owner(job: Job, env: Env, name: cst.Name) -> cst.FunctionDef | None:
    """The function around the kernel whose parameter a name is; None if it is something else."""
    if not isinstance(env.lookup(name.value), Sym):
        return None
    for above in job.file.index.ancestors(name):
        if isinstance(above, cst.FunctionDef):
            params = (*above.params.posonly_params, *above.params.params, *above.params.kwonly_params)
            own = name.value in {param.name.value for param in params}
            rebound = any(name.value in assigned_names(line) for line in above.body.body)
            if own or rebound:
                return above if own and not rebound and above is not job.located.node else None
    return None
