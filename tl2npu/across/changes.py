"""What a module may change after it has bound it: the items of lists and dicts, the attributes of classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_READING_METHODS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
_READING_FUNCTIONS = frozenset(
    ("all any dict enumerate frozenset isinstance len list map max min print range reversed set sorted sum tuple zip")
    .split()
)  # fmt: skip


@dataclass(frozen=True)
class Changes:
    """``stored``: names whose attributes or items are assigned. ``handed``: names of values that may change otherwise,
    as they are used in a way that does not only read them.
    """

    stored: frozenset[str]
    handed: frozenset[str]

    @classmethod
    def of(cls, tree: ast.AST) -> Changes:
        """What happens in a tree, functions included."""
        stored: set[str] = set()
        handed: set[str] = set()
        read: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                stored.add(root_name(node))
            elif isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                if name in ("setattr", "delattr") and node.args:
                    stored.add(root_name(node.args[0]))
                elif isinstance(node.func, ast.Attribute) and node.func.attr not in _READING_METHODS:
                    handed.add(root_name(node.func.value))
            read |= {id(inner) for inner in _only_read(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in read:
                handed.add(node.id)
        return cls(frozenset(stored), frozenset(handed))


def root_name(node: ast.expr) -> str:
    """The name that a chain of attributes and items begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _only_read(node: ast.AST) -> Iterator[ast.AST | None]:
    """The parts of a node that it reads and does not hand on."""
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.FormattedValue)):
        yield node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values, strict=True) if key is None)
    elif isinstance(node, ast.keyword) and node.arg in (None, "pass_configs"):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READING_FUNCTIONS:
        yield from node.args
