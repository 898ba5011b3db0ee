"""What the names of a Triton kernel stand for: functions of Triton, and values that are assigned once."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tl2npu.triton.host.source import TritonFile

_LANGUAGE = "triton.language."
_DEEPEST = 12


class Names:
    """``values``: names with one assignment in the kernel -> what they are assigned."""

    def __init__(self, file: TritonFile, node: ast.FunctionDef) -> None:
        self.aliases = file.source.aliases
        self.values = _assigned_once(node)

    def function(self, func: ast.expr) -> str:
        """What a function of Triton is called, empty for all others: ``tl.load`` is ``load``."""
        head, _, rest = ast.unparse(func).partition(".")
        full = f"{self.aliases.get(head, head)}.{rest}" if rest else self.aliases.get(head, head)
        return full.removeprefix(_LANGUAGE) if full.startswith(_LANGUAGE) else ""

    def written_out(self, node: ast.expr, depth: int = 0) -> ast.expr:
        """An expression with names replaced by their values."""
        names = self

        class Replaced(ast.NodeTransformer):
            def visit_Name(self, name: ast.Name) -> ast.expr:
                value = names.values.get(name.id)
                return name if value is None or depth >= _DEEPEST else names.written_out(value, depth + 1)

        found: ast.expr = Replaced().visit(ast.parse(ast.unparse(node), mode="eval").body)
        return found

    def root(self, pointer: ast.expr) -> str:
        """The pointer that offsets are added to: the first name of the sum."""
        node = self.written_out(pointer)
        while isinstance(node, ast.BinOp):
            node = node.left
        return ast.unparse(node)


def _assigned_once(node: ast.FunctionDef) -> Mapping[str, ast.expr]:
    found: dict[str, list[ast.expr]] = {}
    stored: dict[str, int] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            found.setdefault(part.targets[0].id, []).append(part.value)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            stored[part.id] = stored.get(part.id, 0) + 1
    return {name: values[0] for name, values in found.items() if stored[name] == 1}
