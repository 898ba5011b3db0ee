"""Which names statements set, need from before, and leave for later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy

from tl2npu.source.tree import remembered

_NONE: frozenset[str] = frozenset()
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
    return _entering(body, frozenset(), {})


@remembered
def live_in(function: ast.FunctionDef) -> Live:
    """What is live in a function, which is read more than once."""
    return Live(function.body)


class Live:
    """Which values of names may be read behind each statement of a function, also in a later turn of a loop."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._after: dict[ast.stmt, frozenset[str]] = {}
        _entering(body, frozenset(), self._after)

    def __contains__(self, stmt: ast.stmt) -> bool:
        return stmt in self._after

    def with_copy(self, stmt: ast.stmt, like: ast.stmt) -> Live:
        """With a statement behind which the same is live as behind another one."""
        self._after[stmt] = self.after(like)
        return self

    def after(self, stmt: ast.stmt) -> frozenset[str]:
        """The names that are live behind a statement; none for a statement of another function."""
        return self._after.get(stmt, frozenset())


def _entering(body: Sequence[ast.stmt], live: frozenset[str], after: dict[ast.stmt, frozenset[str]]) -> frozenset[str]:
    """The names that are live in front of statements, from those behind them; ``after``: notes them on the way."""
    for stmt in reversed(body):
        after[stmt] = live
        match stmt:
            case ast.If():
                live = _read(stmt.test) | _entering(stmt.body, live, after) | _entering(stmt.orelse, live, after)
            case ast.For() | ast.While():
                ends = _entering(stmt.orelse, live, after)
                turns, each = (stmt.iter, assigned([stmt.target])) if isinstance(stmt, ast.For) else (stmt.test, _NONE)
                live = ends if isinstance(stmt, ast.For) else ends | _read(turns)
                for _ in range(2):  # what a turn needs is live behind the turn in front of it
                    live |= _entering(stmt.body, live, after) - each
                live |= _read(turns)
            case ast.With():
                live = _entering(stmt.body, live, after).union(*(_read(item.context_expr) for item in stmt.items))
            case ast.Return():
                live = _read(stmt)
            case _:
                live = _read(stmt) | (live - assigned([stmt]))
    return live


@remembered
def mentioned(value: ast.expr) -> frozenset[str]:
    """The names in an expression."""
    return frozenset(node.id for node in ast.walk(value) if isinstance(node, ast.Name))


def _read(node: ast.AST) -> frozenset[str]:
    changed = {node.target} if isinstance(node, ast.AugAssign) else ()
    return frozenset(
        item.id
        for item in ast.walk(node)
        if isinstance(item, ast.Name) and (isinstance(item.ctx, ast.Load) or item in changed)
    )


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


def placed(function: ast.FunctionDef, line: int) -> ast.FunctionDef:
    """A function of another file as if all of it stood in the line of the call, at a place of its own for each node."""
    made = deepcopy(function)
    for number, node in enumerate(ast.walk(made)):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
            node.lineno, node.col_offset = line, -1 - number
    return made
