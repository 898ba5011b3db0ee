"""What the names of a function mean: which are set once, which hold memory or pointers into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tl2npu.dialects.triton.tle import tle_name
from tl2npu.triton.refused import Refused


class Function:
    """A function under ``triton.jit`` with the text of its file.

    ``allocations``: name -> its only assignment, an allocation; ``pointers``: name -> the calls of ``local_ptr`` that
    are assigned to it.
    """

    def __init__(self, text: str, node: ast.FunctionDef, aliases: Mapping[str, str]) -> None:
        self.text, self.node = text, node
        self.params = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        self.aliases = {name: path for name, path in aliases.items() if name not in self.params}
        self.set: dict[str, list[ast.AST]] = {}
        for item in ast.walk(node):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                self.set.setdefault(item.id, []).append(item)
        self.assigned = {
            stmt.targets[0].id: stmt
            for stmt in ast.walk(node)
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name)
        }
        self.allocations = {
            name: stmt
            for name, stmt in self.assigned.items()
            if self.once(name) and self.name(stmt.value) == "gpu.alloc"
        }
        self.pointers: dict[str, list[ast.Assign]] = {}
        for stmt in ast.walk(node):
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)]) if self.name(stmt.value) == "gpu.local_ptr":
                    self.pointers.setdefault(name, []).append(stmt)

    def once(self, name: str) -> bool:
        """True if a name is set in one place, and is no parameter."""
        return len(self.set.get(name, ())) == 1 and name not in self.params

    def path(self, node: ast.expr) -> str | None:
        """The full dotted name of an expression that names something imported."""
        first, _, rest = ast.unparse(node).partition(".")
        return f"{self.aliases[first]}.{rest}".rstrip(".") if first in self.aliases else None

    def name(self, node: ast.AST) -> str | None:
        """The name in TLE of the function that an expression calls."""
        path = self.path(node.func) if isinstance(node, ast.Call) else None
        return None if path is None else tle_name(path)

    def language(self, node: ast.AST) -> str | None:
        """The name in ``triton.language`` of the function that an expression calls."""
        path = self.path(node.func) if isinstance(node, ast.Call) else None
        prefix, _, last = (path or "").rpartition(".")
        return last if prefix == "triton.language" else None

    def source(self, node: ast.AST) -> str:
        """The text of an expression. Refuses text that would have to be rewritten in itself."""
        if any((self.name(item) or "").startswith("gpu.") for item in ast.walk(node)):
            raise self.refuse(node, f"`{ast.unparse(node)}` stands where its text is needed")
        found = ast.get_source_segment(self.text, node)
        assert found is not None
        return found

    def refuse(self, node: ast.AST, message: str) -> Refused:
        """A refusal at an expression."""
        return Refused("TL595", getattr(node, "lineno", self.node.lineno), message)

    def argument(self, call: ast.Call, place: int | None, *words: str) -> ast.expr | None:
        """An argument by its place or by one of its names."""
        if place is not None and place < len(call.args):
            return call.args[place]
        return next((word.value for word in call.keywords if word.arg in words), None)

    def statements(self) -> Iterator[ast.stmt]:
        """Every statement in the function, the outer before the inner."""
        for item in ast.walk(self.node):
            if isinstance(item, ast.stmt) and item is not self.node:
                yield item
