"""Which reduction a function of two elements makes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tl2npu.source.triton_imports import triton_name
from tl2npu.triton.read.spec import Source
from tl2npu.triton.read.values import Function, Value

_SIGNS: Mapping[type[ast.AST], str] = {ast.Add: "sum", ast.BitOr: "or", ast.BitAnd: "and", ast.Or: "or", ast.And: "and"}
_CALLS = {"triton.language.maximum": "max", "triton.language.minimum": "min"}


def reduction_of(function: Value, around: Source, dtype: str) -> str:
    """The reduction of elements of a type that ``tl.reduce`` makes with a function: ``sum``, ``max`` or ``min``; empty
    for all others.

    Of truths as 0 and 1, ``or`` is the maximum and ``and`` the minimum. ``tl.sum`` converts small types before it adds,
    which ``tl.reduce`` does not. ``around``: the file of the kernel.
    """
    if not isinstance(function, Function):
        return ""
    source = function.source if isinstance(function.source, Source) else around
    name = combination(function.node, source.aliases)
    if dtype == "bool":
        return {"or": "max", "and": "min"}.get(name, "")
    return "" if name in ("or", "and") or (name == "sum" and dtype not in ("float32", "int32")) else name


def combination(node: ast.FunctionDef, paths: Mapping[str, str]) -> str:
    """``sum``, ``max``, ``min``, ``or``, ``and``: what ``return a + b`` and its like stand for; empty for the rest.

    ``paths``: what the names of other modules mean where the function stands.
    """
    arguments = node.args
    params = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    body = [stmt for stmt in node.body if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))]
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    if isinstance(value, ast.BoolOp):
        name, operands = _SIGNS.get(type(value.op), ""), value.values
    elif isinstance(value, ast.BinOp):
        name, operands = _SIGNS.get(type(value.op), ""), [value.left, value.right]
    elif isinstance(value, ast.Call) and not value.keywords:
        first, _, rest = ast.unparse(value.func).partition(".")
        name, operands = _CALLS.get(triton_name(f"{paths.get(first, first)}.{rest}".rstrip(".")), ""), value.args
    else:
        return ""
    read = [operand.id for operand in operands if isinstance(operand, ast.Name)]
    return name if len(params) == len(operands) == 2 and sorted(read) == sorted(params) else ""
