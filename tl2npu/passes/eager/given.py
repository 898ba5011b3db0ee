"""Functions that callers give an eager kernel, ``f(x, relu)``: if all give the same, the kernel calls it itself."""

from __future__ import annotations

import libcst as cst

from tl2npu.passes.eager.kernel import Plan
from tl2npu.passes.names.definitions import defined_function, visible_uses
from tl2npu.source.index import Index
from tl2npu.source.tree import argument, mentioned, names_in


def functions_given(index: Index, plan: Plan) -> dict[str, str]:
    """Parameter -> the function of the module that all calls in it give, for parameters that the kernel only calls."""
    scope = index.parent(plan.node)
    if not isinstance(scope, cst.Module):
        return {}
    inside = {id(name) for name in names_in(plan.node)}
    calls = [index.parent(use) for use in visible_uses(scope, plan.name) if id(use) not in inside]
    direct = [call for call in calls if isinstance(call, cst.Call)]
    if not direct or len(direct) < len(calls):
        return {}
    params = [param.name.value for param in plan.node.params.params]
    found: dict[str, str] = {}
    for param in plan.configs:
        name = param.name.value
        if param.default is not None or name not in params or not _is_called(index, plan, name):
            continue
        given = {_given(call, name, params.index(name)) for call in direct}
        function = given.pop() if len(given) == 1 else None
        taken = mentioned(plan.node)
        if function is not None and function not in taken and defined_function(index, function, direct):
            found[name] = function
    return found


def _is_called(index: Index, plan: Plan, name: str) -> bool:
    """Whether the kernel does nothing with a parameter but call it."""
    parents = [index.parent(use) for use in names_in(plan.node.body) if use.value == name]
    uses = [use for use in names_in(plan.node.body) if use.value == name]
    return bool(uses) and all(
        isinstance(above, cst.Call) and above.func is use for use, above in zip(uses, parents, strict=True)
    )


def _given(call: cst.Call, name: str, position: int) -> str | None:
    """The name that a call gives a parameter."""
    if any(arg.star for arg in call.args):
        return None
    value = argument(call, name, position)
    return value.value if isinstance(value, cst.Name) else None
