"""Host code that only said how many blocks a Triton kernel is launched with: the new call needs nothing of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_CALLS = frozenset({"cdiv", "next_power_of_2", "min", "max", "int", "len", "numel", "size", "stride", "dim"})


def grids(calls: Iterable[ast.Call]) -> frozenset[str]:
    """The names in ``[...]`` of launches."""
    found = (item.func.slice for item in calls if isinstance(item.func, ast.Subscript))
    return frozenset(node.id for part in found for node in ast.walk(part) if isinstance(node, ast.Name))


def idle(text: str, names: frozenset[str]) -> Iterator[ast.stmt]:
    """Definitions of ``names`` in functions, and at the top, that do nothing else and that nothing reads any more."""
    tree = ast.parse(text)
    scopes = [tree, *(node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))]
    for scope in scopes:
        if not any(_defined(stmt) in names for stmt in scope.body[:-1]):
            continue
        inside = list(ast.walk(scope))
        read = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        set_ = [node.id for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
        for stmt in scope.body[:-1]:  # no body may become empty
            name = _defined(stmt)
            if name in names and name not in read and set_.count(name) == (not isinstance(stmt, ast.FunctionDef)):
                yield stmt


def _defined(stmt: ast.stmt) -> str | None:
    """The name that a statement gives a value without doing anything else."""
    if isinstance(stmt, ast.FunctionDef):
        return None if stmt.decorator_list else stmt.name
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
        return None
    value = stmt.value
    calls = [] if isinstance(value, ast.Lambda) else [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    odd = any(isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for node in ast.walk(value))
    return None if odd or not all(_called(call) in _CALLS for call in calls) else stmt.targets[0].id


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
