"""Comments of a Triton kernel, and where they stand in the factory."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence

from tl2npu.tile.ir import Kernel, statements
from tl2npu.tile.write.tilelang import LAUNCH, Comments

_SPACE = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE)


def comments_of(text: str) -> Comments:
    """All comments of a file."""
    above: dict[int, list[str]] = {}
    beside: dict[int, list[str]] = {}
    waiting: list[str] = []
    first = 0  # the line on which the statement began that is not over
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if first:
                beside.setdefault(first, []).append(token.string)
            else:
                waiting.append(token.string)
        elif token.type == tokenize.NEWLINE:
            first = 0
        elif token.type not in _SPACE:
            if waiting:
                above[token.start[0]] = waiting
                waiting = []
            first = first or token.start[0]
    return Comments(above, beside)


def placed_comments(
    comments: Comments, kernel: Kernel, node: ast.FunctionDef, others: Sequence[ast.FunctionDef]
) -> Comments:
    """The comments of a kernel and of what it calls, by the line of the first statement that is left behind each.

    Those beside a statement that is gone stand above that one, or above the launch where it named a block.
    """
    lines = sorted({stmt.origin.line for stmt in statements(kernel.body)})
    blocks = {stmt.lineno for stmt in node.body if _names_a_block(stmt)}
    above: dict[int, list[str]] = {}
    beside: dict[int, list[str]] = {}
    for function in (node, *(item for item in others if item is not node)):
        last = function.end_lineno or function.lineno
        own = {line for line in (*comments.above, *comments.beside) if function.body[0].lineno <= line <= last}
        for line in sorted(own):
            place = next((item for item in lines if line <= item <= last), None)
            if place is not None:
                above.setdefault(place, []).extend(comments.above.get(line, ()))
            if line not in comments.beside:
                continue
            if place == line:
                beside.setdefault(place, []).extend(comments.beside[line])
            elif line in blocks:
                above.setdefault(LAUNCH, []).extend(comments.beside[line])
            elif place is not None:
                above.setdefault(place, []).extend(comments.beside[line])
    return Comments(above, beside)


def _names_a_block(stmt: ast.stmt) -> bool:
    """``pid = tl.program_id(0)``."""
    return (
        isinstance(stmt, ast.Assign)
        and isinstance(stmt.value, ast.Call)
        and isinstance(stmt.value.func, ast.Attribute)
        and stmt.value.func.attr == "program_id"
    )
