"""Functions that hand all they are given to another one: ``def mine(*args, **kwargs): return f(*args, **kwargs)``."""

from __future__ import annotations

import libcst as cst

from tl2npu.source.named_by_call import returns_of
from tl2npu.source.tree import mentioned, nodes_of, remembered

_PLAIN = (cst.If, cst.Try, cst.Return, cst.Raise, cst.Import, cst.ImportFrom, cst.Pass, cst.Expr, cst.FunctionDef)


@remembered
def callee_of(function: cst.FunctionDef) -> tuple[cst.BaseExpression, bool] | None:
    """What the function calls with its own arguments, each as it was given, and whether that is all it ever does.

    None for other functions: those that do more, or that hand on to several others; one of their own does not count.
    """
    if function.decorators or function.asynchronous is not None:
        return None
    calls = [call for value in returns_of(function) if (call := _forwarding(function, value)) is not None]
    if len(calls) > 1:  # `return tilelang.jit(*args)` where it is installed, else `return no_op(*args)`
        calls = [call for call in calls if isinstance(call.func, cst.Attribute)]
    body = _statements(function.body)
    own = {param.name.value for param in nodes_of(function.params, cst.Param)}
    changes = any(isinstance(node, cst.Expr) and mentioned(node) & own for node in body)
    if len(calls) != 1 or changes or not all(isinstance(node, _PLAIN) for node in body):
        return None
    return calls[0].func, sum(not _is_docstring(node) for node in body) == 1


def _forwarding(function: cst.FunctionDef, value: cst.BaseExpression | None) -> cst.Call | None:
    if not isinstance(value, cst.Call) or not isinstance(value.func, (cst.Name, cst.Attribute)):
        return None
    params = function.params
    wanted = {(param.name.value, "") for param in (*params.posonly_params, *params.params, *params.kwonly_params)}
    for star, shown in ((params.star_arg, "*"), (params.star_kwarg, "**")):
        wanted |= {(star.name.value, shown)} if isinstance(star, cst.Param) else set()
    places = [param.name.value for param in (*params.posonly_params, *params.params)]
    given: set[tuple[str, str]] = set()
    for place, arg in enumerate(value.args):
        if not isinstance(arg.value, cst.Name):
            return None
        name = arg.value.value
        if arg.keyword is not None and arg.keyword.value != name:
            return None
        if arg.keyword is None and not arg.star and places[place : place + 1] != [name]:
            return None
        given.add((name, arg.star))
    return value if given == wanted and len(value.args) == len(wanted) and wanted else None


def _is_docstring(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.BaseString)


def _statements(block: cst.BaseSuite) -> list[cst.CSTNode]:
    """Every statement of a block and of those in it, but not of functions."""
    found: list[cst.CSTNode] = []
    for line in block.body:
        if isinstance(line, cst.SimpleStatementLine):
            found += line.body
            continue
        found.append(line)
        if isinstance(line, cst.If):
            found += _statements(line.body)
            rest = line.orelse
            while rest is not None:
                found += _statements(rest.body)
                rest = rest.orelse if isinstance(rest, cst.If) else None
        elif isinstance(line, cst.Try):
            parts = [line.body, *(handler.body for handler in line.handlers)]
            parts += [part.body for part in (line.orelse, line.finalbody) if part is not None]
            found += [statement for part in parts for statement in _statements(part)]
    return found
