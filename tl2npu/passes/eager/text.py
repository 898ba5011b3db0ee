"""The new text of an eager kernel that has been taken apart: a factory with a prim_func."""

from __future__ import annotations

import libcst as cst

from tl2npu.passes.eager.kernel import Line, Plan, is_return
from tl2npu.source.blocks import LineSlot, merge_lines
from tl2npu.source.edits import Edits
from tl2npu.source.names import LANGUAGE
from tl2npu.source.tree import mentioned, nodes_of


def rebuilt_parts(plan: Plan, edits: Edits) -> None:
    """Edit the decorator, the parameters and the body of the function."""
    _decorate(plan, edits)
    returns = plan.node.returns
    if returns is not None and "JITKernel" not in {part.value for part in nodes_of(returns, cst.Name)}:
        edits.remove(returns)  # the kernel's tensors; the factory gives a prim_func
    _parameters(plan, edits)
    edits.replace(plan.node.body, _body(plan))


def _decorate(plan: Plan, edits: Edits) -> None:
    if not plan.results:
        return
    first = len(plan.inputs)
    out_idx = f"out_idx=[{', '.join(str(first + n) for n in range(len(plan.results)))}]"
    jit = plan.jit.decorator
    if isinstance(jit, cst.Call) and jit.args:
        call = cst.ensure_type(cst.parse_expression(f"f({out_idx})"), cst.Call)
        edits.replace_many(jit.args[0], [call.args[0], jit.args[0]])
    else:
        func = jit.func if isinstance(jit, cst.Call) else jit
        assert isinstance(func, (cst.Name, cst.Attribute))
        call = cst.ensure_type(cst.parse_expression(f"f({out_idx})"), cst.Call)
        edits.replace(jit, call.with_changes(func=func))


def _parameters(plan: Plan, edits: Edits) -> None:
    extents = [cst.Param(cst.Name(name)) for name in plan.consts]
    for position, param in enumerate(plan.params):
        goes = param.name.value in plan.declared
        new: list[cst.Param] = [] if goes else [param]
        if position == 0 and extents:
            edits.replace_many(param, [*extents, *new])
        elif goes:
            edits.remove(param)
    if not plan.params and extents:
        edits.replace(plan.node.params, cst.Parameters(extents))


def _body(plan: Plan) -> cst.IndentedBlock:
    old = cst.ensure_type(plan.node.body, cst.IndentedBlock)
    function = _prim_func(plan)
    blank = [cst.EmptyLine(indent=False)]
    give = cst.SimpleStatementLine([cst.Return(cst.Name(function.name.value))], leading_lines=blank)
    tail = old.body[-1]
    if isinstance(tail, cst.SimpleStatementLine) and is_return(tail):
        comments = [line for line in tail.leading_lines if line.comment is not None]
        give = give.with_changes(leading_lines=blank + comments, trailing_whitespace=tail.trailing_whitespace)
    kept = any(slot.new for slot in plan.slots)
    if kept:
        function = function.with_changes(leading_lines=blank)
    slots = [*plan.slots, LineSlot(plan.launches[0].with_changes(leading_lines=()), (function, give))]
    body, footer = merge_lines(slots, old.footer)
    return old.with_changes(body=body, footer=footer)


def _prim_func(plan: Plan) -> cst.FunctionDef:
    taken = mentioned(plan.node) | {p.name.value for p in plan.params}
    name = next(n for n in ("main", "kernel", "prim_func", "main_kernel") if n not in taken or n == "main_kernel")
    decorator = plan.names.spell(LANGUAGE + "prim_func", plan.node)
    if decorator is None:
        raise plan.blocked(plan.node, "this file does not import `T.prim_func` under any name")
    params = [*plan.inputs, *plan.results]
    indent = plan.index.module.default_indent
    lines = [f"@{decorator}", f"def {name}("]
    for item in params:
        above = item.line.leading_lines if item.line is not None else ()
        lines += [f"{indent}{line.comment.value}" for line in above if line.comment is not None]
        behind = item.line.trailing_whitespace.comment if item.line is not None else None
        lines.append(f"{indent}{item.name}: 0," + (f"  {behind.value}" if behind is not None else ""))
    lines += ["):", f"{indent}pass", ""]
    text = "\n".join(lines) if params else f"@{decorator}\ndef {name}():\n{indent}pass\n"
    made = cst.ensure_type(cst.parse_statement(text, plan.index.module.config_for_parsing), cst.FunctionDef)
    annotated = [
        param.with_changes(annotation=cst.Annotation(_called(item.annotation)))
        for param, item in zip(made.params.params, params, strict=True)
    ]
    body: list[Line] = [*plan.inner, *plan.launches]
    body[0] = without_blank_above(body[0])
    return made.with_changes(params=made.params.with_changes(params=annotated), body=made.body.with_changes(body=body))


def without_blank_above(line: Line) -> Line:
    """A statement without the blank lines above it, for the beginning of a block; comments stay."""
    above = list(line.leading_lines)
    while above and above[0].comment is None:
        above.pop(0)
    return line.with_changes(leading_lines=above)


def _called(annotation: cst.BaseExpression) -> cst.BaseExpression:
    """``T.Tensor[shape, dtype]`` as ``T.Tensor(shape, dtype)``, which every version takes."""
    if not isinstance(annotation, cst.Subscript):
        return annotation
    args = [cst.Arg(item.slice.value) for item in annotation.slice if isinstance(item.slice, cst.Index)]
    args = [
        arg.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))) if n < len(args) - 1 else arg
        for n, arg in enumerate(args)
    ]
    return cst.Call(annotation.value, args)
