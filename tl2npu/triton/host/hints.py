"""Hints of TLE that change no value: blocks under a hint become plain statements, and what is dropped is told."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tl2npu.dialects.triton.tle import HINTS, RANGES, tle_name

_ORDER = frozenset({"pipe_stages", "pipe_orders", "executors"})


def without_hints(function: ast.FunctionDef, aliases: Mapping[str, str]) -> list[tuple[int, str]]:
    """Put the bodies of ``with tle.pipeline_group(...)`` and ``with tle.dsa.hint(...)`` in their place.

    Changes the tree. Returns the lines of the hints that asked for an order or for cores, and their text.
    """
    unwrap = _Unwrap(aliases)
    unwrap.visit(function)
    return unwrap.dropped


class _Unwrap(ast.NodeTransformer):
    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.aliases = aliases
        self.dropped: list[tuple[int, str]] = []

    def name(self, node: ast.expr) -> str | None:
        """The name in TLE of a function that is called."""
        if not isinstance(node, ast.Call):
            return None
        first, _, rest = ast.unparse(node.func).partition(".")
        return tle_name(f"{self.aliases[first]}.{rest}".rstrip(".")) if first in self.aliases else None

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        found = [self.name(item.context_expr) for item in node.items]
        if not all(name in HINTS for name in found) or any(item.optional_vars for item in node.items):
            return node
        if "pipeline_group" in found:
            self.dropped.append((node.lineno, f"`{ast.unparse(node.items[0].context_expr)}`"))
        return list(node.body)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if self.name(node.iter) in RANGES and isinstance(node.iter, ast.Call):
            words = [word.arg for word in node.iter.keywords if word.arg in _ORDER]
            self.dropped += [(node.lineno, f"`{word}`") for word in words]
        return node
