"""A function with the name and the signature of an eager kernel, for callers that go on calling it that way."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import libcst as cst

from tl2npu.across.receivers import Asked
from tl2npu.passes.eager.extents import Axis, choice
from tl2npu.passes.eager.kernel import Plan


def wrapper_of(plan: Plan, factory: str, axes: Mapping[str, Sequence[Axis]]) -> cst.FunctionDef:
    """``def f(A, B, *args, **kwargs): return f_kernel(A.shape[0], ..., *args, **kwargs)(A, B)``.

    Extents that no tensor tells are the caller's to give by name, as before.
    """
    tensors = [item.name for item in plan.inputs]
    names = [param.name.value for param in plan.node.params.params]
    told = [(name, text) for name in plan.consts if (text := _text(axes.get(name) or [])) is not None]
    in_order = len(told) == len(plan.consts)
    extents = [text if in_order else f"{name}={text}" for name, text in told]
    conditional = any(" if " in text for _, text in told)
    first = names[: len(tensors)] == tensors and not plan.node.params.kwonly_params and not conditional
    config = plan.configs
    params = _parameters(tensors, plan)
    passed = extents
    if config and first and in_order:
        params += ["*args", "**kwargs"]
        passed = [*extents, "*args", "**kwargs"]
    elif config:
        passed = [*extents, *(f"{p.name.value}={p.name.value}" for p in config)] + ([] if in_order else ["**extents"])
    indent = plan.index.module.default_indent
    text = f"def {plan.name}({', '.join(params)}):\n{indent}return {factory}({', '.join(passed)})"
    text += f"({', '.join(tensors)})\n"
    made = cst.ensure_type(cst.parse_statement(text, plan.index.module.config_for_parsing), cst.FunctionDef)
    if config and "*args" not in params:
        rest = cst.Param(cst.Name("extents"), star="**") if not in_order else None
        made = made.with_changes(params=plan.node.params.deep_clone().with_changes(star_kwarg=rest))
    top = isinstance(plan.index.parent(plan.node), cst.Module)
    return made.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * (2 if top else 1))


def attribute_for(asked: Asked, plan: Plan, factory: str) -> str | None:
    """The statement that gives the function an attribute which hosts ask of the kernel; None if there is no such.

    A factory does what ``kernel.compile(M=M, N=N)`` does: on an NPU there is no kernel object beside it.
    """
    above = asked.above
    if asked.attribute == "compile" and isinstance(above, ast.Call) and _names_extents(above, plan):
        return f"{plan.name}.compile = {factory}"
    if asked.attribute == "func" and isinstance(above, ast.Attribute) and above.attr == "__name__":
        return f"{plan.name}.func = {plan.name}"
    return None


def _names_extents(call: ast.Call, plan: Plan) -> bool:
    """Arguments by name, and every extent among them: what stands in ``**options`` is for its caller to know."""
    given = {arg.arg for arg in call.keywords}
    tensors = {item.name for item in plan.inputs}
    renamed = any(own != known for own, known in plan.consts.items())
    complete = None in given or set(plan.consts.values()) <= given
    return not call.args and not renamed and complete and not given & tensors


def _parameters(names: Sequence[str], plan: Plan) -> list[str]:
    """The parameters as callers know them: the last ones, if they have defaults, may go on being left out."""
    defaults = {param.name.value: param.default for param in plan.params}
    found: list[str] = []
    for name in reversed(names):
        default = defaults[name] if all("=" in later for later in found) else None
        found.append(name if default is None else f"{name}={plan.index.module.code_for_node(default)}")
    return found[::-1]


def _text(axes: Sequence[Axis]) -> str | None:
    """An extent in terms of the parameters; None where no tensor tells it."""
    always = next((axis for axis in axes if axis.when is None), None)
    if always is not None:
        return f"{always.tensor}.shape[{always.axis}]"
    either = choice(axes)
    if either is None:
        return None
    true, false = either
    return f"{true.tensor}.shape[{true.axis}] if {true.when} else {false.tensor}.shape[{false.axis}]"
