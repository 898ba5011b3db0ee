"""Statements that return early, as ones that return at their end."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def returns(node: ast.AST) -> bool:
    """True if there is a ``return`` in a statement."""
    return any(isinstance(item, ast.Return) for item in ast.walk(node))


def statements_in(body: Sequence[ast.stmt]) -> int:
    """How many statements there are, those in loops and branches counted."""
    return sum(isinstance(node, ast.stmt) for stmt in body for node in ast.walk(stmt))


def carried_on(stmt: ast.If, rest: Sequence[ast.stmt]) -> tuple[ast.If, list[ast.stmt]]:
    """An ``if`` whose branches both go on with what follows, and what is behind it then: a ``return``, if any does."""
    if any(map(returns, (stmt, *rest))):
        both, *last = returned_at_end([stmt, *rest])
        assert isinstance(both, ast.If)
        return both, last
    return ast.copy_location(ast.If(stmt.test, [*stmt.body, *rest], [*stmt.orelse, *rest]), stmt), []


def returned_at_end(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The same, with what follows a branch that returns in the other branch, and one ``return`` behind both.

    Loops keep theirs. What is returned goes by a name that the statements do not use; several values by one each.
    """
    inside = [node for stmt in body for node in ast.walk(stmt)]
    found = [node.value for node in inside if isinstance(node, ast.Return)]
    counts = {len(value.elts) if isinstance(value, ast.Tuple) else 1 for value in found}
    count = counts.pop() if len(counts) == 1 else 1
    taken = {node.id for node in inside if isinstance(node, ast.Name)}
    free = (
        name
        for number in range(len(taken) + count)
        if (name := f"result_{number}" if number else "result") not in taken
    )
    names = [next(free) for _ in range(count)]

    def given(value: ast.expr, at: ast.stmt) -> list[ast.stmt]:
        values = value.elts if count > 1 and isinstance(value, ast.Tuple) else [value]
        pairs = zip(names, values, strict=True)
        return [_placed(ast.Assign([ast.Name(name, ast.Store())], part), at) for name, part in pairs]

    def ending(part: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements that give what is returned its names, wherever they end."""
        for number, stmt in enumerate(part):
            rest = part[number + 1 :]
            if isinstance(stmt, ast.Return):
                return [*part[:number], *given(stmt.value or ast.Constant(None), stmt)]
            if isinstance(stmt, ast.If) and returns(stmt):
                both = ast.If(stmt.test, ending([*stmt.body, *rest]), ending([*stmt.orelse, *rest]))
                return [*part[:number], _placed(both, stmt)]
        return [*part, *(given(ast.Constant(None), body[-1]) if count == 1 else [])]

    last = [ast.Name(name, ast.Load()) for name in names]
    end = ast.Return(ast.Tuple([*last], ast.Load()) if count > 1 else last[0])
    return [*ending(body), _placed(end, body[-1])]


def _placed(node: ast.stmt, at: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(node, at))


def place_of(stmt: ast.stmt) -> tuple[int, int]:
    """Where a statement stands, which a copy of it has too."""
    return stmt.lineno, stmt.col_offset
