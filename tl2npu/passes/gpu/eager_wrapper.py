"""A function with the name and the signature of an eager kernel, for callers that go on calling it that way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from tl2npu.passes.gpu.eager_kernel import Plan

if TYPE_CHECKING:
    from tl2npu.passes.gpu.eager_calls import Callers


def wrapper_of(plan: Plan, callers: Callers) -> cst.FunctionDef:
    """``def f(A, B, *args, **kwargs): return f_kernel(A.shape[0], ..., *args, **kwargs)(A, B)``.

    Extents that no tensor tells are the caller's to give by name, as before.
    """
    tensors = [item.name for item in plan.inputs]
    names = [param.name.value for param in plan.node.params.params]
    told = [(name, axes[0]) for name in plan.consts if (axes := callers.axes.get(name))]
    in_order = len(told) == len(plan.consts)
    extents = [f"{tensor}.shape[{axis}]" for _, (tensor, axis) in told]
    if not in_order:
        extents = [f"{name}={tensor}.shape[{axis}]" for name, (tensor, axis) in told]
    first = names[: len(tensors)] == tensors and not plan.node.params.kwonly_params
    config = plan.configs
    params = list(tensors)
    passed = extents
    if config and first and in_order:
        params += ["*args", "**kwargs"]
        passed = [*extents, "*args", "**kwargs"]
    elif config:
        module = plan.index.module
        written = module.code_for_node(plan.node.params.with_changes(star_arg=plan.node.params.star_arg))
        params = [written.strip().rstrip(",")] + ([] if in_order else ["**extents"])
        passed = [*extents, *(f"{p.name.value}={p.name.value}" for p in config)] + ([] if in_order else ["**extents"])
    text = f"def {plan.name}({', '.join(params)}):\n    return {callers.factory_name}({', '.join(passed)})"
    text += f"({', '.join(tensors)})\n"
    made = cst.parse_statement(text, plan.index.module.config_for_parsing)
    assert isinstance(made, cst.FunctionDef)
    top = isinstance(plan.index.parent(plan.node), cst.Module)
    return made.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * (2 if top else 1))
