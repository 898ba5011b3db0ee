"""Which names statements set, need from before, and leave for later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy

COUNTED = "counts up"
"""The ``type_comment`` of a ``for`` that was a ``while``: it is one only where its step is at least 1."""


def assigned(body: Sequence[ast.AST]) -> frozenset[str]:
    """Names that are set somewhere in statements."""
    return frozenset(
        node.id
        for stmt in body
        for node in ast.walk(stmt)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def exposed(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that may be read before the statements set them."""
    needed: set[str] = set()
    _flow(body, set(), needed)
    return frozenset(needed)


def _flow(body: Sequence[ast.stmt], known: set[str], needed: set[str]) -> None:
    for stmt in body:
        if isinstance(stmt, ast.If):
            needed |= _read(stmt.test) - known
            one, other = set(known), set(known)
            _flow(stmt.body, one, needed)
            _flow(stmt.orelse, other, needed)
            known |= one & other
        elif isinstance(stmt, (ast.For, ast.While)):
            needed |= _read(stmt.iter if isinstance(stmt, ast.For) else stmt.test) - known
            inner = set(known) | (assigned([stmt.target]) if isinstance(stmt, ast.For) else set())
            _flow(stmt.body, inner, needed)
        elif isinstance(stmt, ast.With):
            needed |= set().union(*(_read(item.context_expr) for item in stmt.items)) - known
            _flow(stmt.body, known, needed)
        elif isinstance(stmt, ast.Return) and stmt.value is None:
            return
        else:
            needed |= _read(stmt) - known
            known |= assigned([stmt])


def _read(node: ast.AST) -> set[str]:
    found = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    for item in ast.walk(node):
        if isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
            found.add(item.target.id)
    return found


def spine(value: ast.expr) -> Iterator[ast.Call]:
    """The calls from which a value is made by arithmetic alone."""
    if isinstance(value, ast.BinOp):
        yield from spine(value.left)
        yield from spine(value.right)
    elif isinstance(value, ast.UnaryOp):
        yield from spine(value.operand)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to":
        yield from spine(value.func.value)
    elif isinstance(value, ast.Call):
        yield value


def read_after(scope: ast.FunctionDef, stmt: ast.stmt, name: str) -> bool:
    """True if the value of a name may be read behind a statement of a function, also in a later turn of a loop."""
    return _reads(scope.body, stmt, name) is True


def _reads(body: Sequence[ast.stmt], stmt: ast.stmt, name: str) -> bool | None:
    """Whether the name is read behind ``stmt``, which is somewhere in ``body``; None: neither read nor set."""
    for number, item in enumerate(body):
        if item is not stmt and not any(inner is stmt for inner in ast.walk(item)):
            continue
        if item is not stmt:
            parts = [getattr(item, part, None) or [] for part in ("body", "orelse")]
            found = next((_reads(part, stmt, name) for part in parts if any(stmt in ast.walk(s) for s in part)), None)
            if found is None and isinstance(item, (ast.For, ast.While)) and name in exposed(item.body):
                return True
            if found is not None:
                return found
        rest = body[number + 1 :]
        if name in exposed(rest):
            return True
        known: set[str] = set()
        _flow(rest, known, set())
        return False if name in known else None
    return None


def placed(function: ast.FunctionDef, line: int) -> ast.FunctionDef:
    """A function of another file as if all of it stood in the line of the call, at a place of its own for each node."""
    made = deepcopy(function)
    for number, node in enumerate(ast.walk(made)):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
            node.lineno, node.col_offset = line, -1 - number
    return made
