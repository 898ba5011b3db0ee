"""How deep expressions may be: LibCST takes minutes for a chain of thousands of attributes, and every walk recurses."""

from __future__ import annotations

import ast
from itertools import accumulate

from tl2npu.source.text import SourceError

DEEPEST = 800
"""Attributes, subscripts, calls or operators around each other; LibCST takes 3 seconds for them."""


def refuse_deep_expressions(module: ast.Module, text: str) -> None:
    """Raise :class:`SourceError` for an expression that is nested deeper than :data:`DEEPEST`.

    A level is a character at least, so that only long parts of the text are looked at.
    """
    if len(text) < DEEPEST:
        return
    starts = [0, *accumulate(len(line) + 1 for line in text.encode("utf-8", "surrogatepass").split(b"\n"))]
    pending: list[tuple[ast.AST, int, int]] = [(module, 0, 1)]
    while pending:
        node, depth, line = pending.pop()
        if depth > DEEPEST:
            why = f"nested too deeply: more than {DEEPEST} attributes, calls or operators in one expression"
            raise SourceError(why, line)
        for child in ast.iter_child_nodes(node):
            inner = depth + isinstance(child, ast.expr)
            if isinstance(child, ast.stmt):
                inner = 0  # chains of `elif` are another matter
            if isinstance(child, (ast.expr, ast.stmt)):
                begin = starts[child.lineno - 1] + child.col_offset
                end = starts[(child.end_lineno or child.lineno) - 1] + (child.end_col_offset or 0)
                if end - begin < DEEPEST - depth and not getattr(child, "decorator_list", ()):  # they stand above it
                    continue
                line = child.lineno
            pending.append((child, inner, line))
