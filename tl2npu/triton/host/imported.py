"""Kernels of other modules of the repository, which a file launches: their text in the place of their imports.

The factory of a kernel follows from the host code that launches it, so it stands beside that. A kernel's own names
come with it, as imports from its module; those that the file has another meaning for keep the kernel where it is.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tl2npu.across.modules import display
from tl2npu.across.symbols import Function, Symbols
from tl2npu.across.users import Users
from tl2npu.source.triton_imports import may_launch
from tl2npu.triton.host.source import TritonFile, aliases_of, parse
from tl2npu.triton.host.wrapped import without_wrappers

_Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Imported:
    """A kernel: ``alias``: the file's name for it, ``line``: that of its first launch; ``path``: where it is defined;
    ``helpers``: the functions, with their modules, that its decorators need.
    """

    alias: str
    line: int
    path: Path
    node: ast.FunctionDef
    helpers: tuple[tuple[Path, ast.FunctionDef], ...] = ()

    @property
    def parts(self) -> tuple[tuple[Path, ast.FunctionDef], ...]:
        """All that is placed."""
        return (*self.helpers, (self.path, self.node))


@dataclass(frozen=True)
class Placed:
    """A text with kernels in it. ``lines``: by line, that of the original text, and where a kernel has it from."""

    text: str
    kernels: Mapping[str, Imported]
    lines: tuple[tuple[int, str], ...]

    def line(self, number: int) -> int:
        """The line of the original text."""
        return self.lines[min(max(number, 1), len(self.lines)) - 1][0] if self.lines else number

    def said(self, number: int) -> str:
        """Where a line of a kernel has it from, for messages; empty for other lines."""
        where = self.lines[number - 1][1] if 0 < number <= len(self.lines) else ""
        return f" ({where})" if where else ""


@lru_cache(maxsize=64)
def launched_in(path: Path, kernel: ast.FunctionDef) -> list[str]:
    """The other files of the repository to whose launches the kernel's factory goes, as reports name them."""
    found = []
    for user in Users(path.as_posix()).of(kernel.name):
        try:
            text = user.path.read_text(encoding="utf-8")
            symbols = Symbols()
            symbols.reads(user.path, text)
        except (OSError, ValueError, SyntaxError):
            continue
        kernels = placed(text, user.path, symbols).kernels.values() if may_launch(text.encode()) else ()
        if any(item.path == path and item.node.name == kernel.name for item in kernels):
            found.append(user.shown)
    return found


def placed(text: str, path: Path, symbols: Symbols, leave: Collection[str] = ()) -> Placed:
    """The text with every kernel that it launches and imports, but for those to ``leave``. Raises ``SyntaxError``."""
    return _Placing(text, path, symbols).done(leave)


class _Placing:
    def __init__(self, text: str, path: Path, symbols: Symbols) -> None:
        self.text, self.path, self.symbols = text, path, symbols
        self.tree = ast.parse(text)
        without_wrappers(self.tree, dict(aliases_of(self.tree)))
        self.files: dict[Path, TritonFile | None] = {}
        self.bound: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            for name in _bound(node):
                self.bound.setdefault(name, []).append(node)
        self.needed: dict[str, str] = {}

    def done(self, leave: Collection[str]) -> Placed:
        kernels = {item.node.name: item for item in self.kernels(leave)}
        aliases = {item.alias: name for name, item in kernels.items()}
        lines = self.text.splitlines(keepends=True)
        uses = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id in aliases]
        for use in sorted(uses, key=lambda node: -node.col_offset):  # Triton knows a kernel by its own name
            line, at, end = lines[use.lineno - 1].encode(), use.col_offset, use.end_col_offset
            lines[use.lineno - 1] = (line[:at] + aliases[use.id].encode() + line[end:]).decode()
        new: list[tuple[str, int, str]] = [(line, number + 1, "") for number, line in enumerate(lines)]
        if not kernels:
            return Placed(self.text, {}, tuple((number, "") for _, number, _ in new))
        last = self.last()
        new[last:last] = [("\n", last + 1, "")]
        parts = ((item, path, part) for item in kernels.values() for path, part in item.parts)
        once = {(path, part.name): (item, path, part) for item, path, part in parts}
        for item, path, part in reversed(once.values()):
            new[last:last] = self.written(item, path, part)
        new[last:last] = [(f"{line}\n", last, "") for line in dict.fromkeys(self.needed.values())]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (gone := set(_bound(node)) & aliases.keys()):
                self.shorten(new, node, gone)
        return Placed("".join(line for line, _, _ in new), kernels, tuple((number, at) for _, number, at in new))

    def written(self, item: Imported, path: Path, node: ast.FunctionDef) -> Iterator[tuple[str, int, str]]:
        """A function in the lines of its module, behind two that are blank."""
        table = self.symbols.module(path)
        assert table is not None
        first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
        text = textwrap.dedent("".join(table.lines[first - 1 : node.end_lineno]))
        for number, line in enumerate(["", "", *text.splitlines()], first - 2):
            yield f"{line}\n", item.line, f"{display(path)}:{number}" if number >= first else ""

    def last(self) -> int:
        """How many lines come before the first statement of the module that is no import."""
        found = 0
        for stmt in self.tree.body:
            if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
                break
            if isinstance(stmt, _Import):
                found = stmt.end_lineno or stmt.lineno
        return found

    def shorten(self, new: list[tuple[str, int, str]], node: ast.ImportFrom, gone: set[str]) -> None:
        """Leave names out of an import."""
        place = next(n for n, (_, number, at) in enumerate(new) if number == node.lineno and not at)
        count = (node.end_lineno or node.lineno) - node.lineno + 1
        kept = [alias for alias in node.names if (alias.asname or alias.name) not in gone]
        rest = ast.unparse(ast.ImportFrom(node.module, kept, node.level)) if kept else "pass" if node.col_offset else ""
        new[place : place + count] = [(f"{' ' * node.col_offset}{rest}\n", node.lineno, "")] if rest else []

    def kernels(self, leave: Collection[str]) -> Iterator[Imported]:
        """The kernels that can be placed, by their first launches."""
        seen = set[str]()
        for call in ast.walk(self.tree):
            func = call.func if isinstance(call, ast.Call) else None
            alias = func.value.id if isinstance(func, ast.Subscript) and isinstance(func.value, ast.Name) else ""
            nodes = [node for node in self.bound.get(alias, ()) if isinstance(node, ast.ImportFrom)]
            if not isinstance(call, ast.Call) or alias in seen or nodes != self.bound.get(alias):
                continue
            if not all(map(self.movable, nodes)):
                continue
            seen.add(alias)
            ways = {(_dotted(n), a.name) for n in nodes for a in n.names if (a.asname or a.name) == alias}
            if len(ways) != 1:
                continue
            dotted, original = ways.pop()
            found = self.symbols.imported(self.path, dotted, original)
            if not isinstance(found, Function) or found.module.path == self.path:
                continue
            file = self.file(found.module.path, found.module.text)
            kernel = None if file is None else file.jitted.get(found.node.name)
            if file is None or kernel is None or kernel.name in file.made or kernel.name in file.twice:
                continue
            if kernel.name in leave or (kernel.name != alias and kernel.name in self.bound):
                continue
            item = Imported(alias, call.lineno, found.module.path, kernel, self.helpers(kernel, found.module.path))
            if (needed := self.with_names(item, dotted)) is not None:
                self.needed |= needed
                yield item

    def movable(self, node: ast.ImportFrom) -> bool:
        """True for an import that has its lines to itself, and no other way to bind its names beside it."""
        last = node.end_lineno or node.lineno
        stmts = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and not hasattr(n, "body")]
        alone = all(n is node or n.lineno > last or (n.end_lineno or n.lineno) < node.lineno for n in stmts)
        ways = [n for n in ast.walk(self.tree) if isinstance(n, (ast.Try, ast.If))]
        return alone and not any(inner is node for way in ways for inner in ast.walk(way))

    def file(self, path: Path, text: str) -> TritonFile | None:
        if path not in self.files:
            self.files[path] = _parsed(text)
        return self.files[path]

    def helpers(self, kernel: ast.FunctionDef, path: Path) -> tuple[tuple[Path, ast.FunctionDef], ...]:
        """The functions of the repository that a kernel's decorators call, and those call."""
        found: dict[tuple[Path, str], ast.FunctionDef] = {}
        parts = (node for part in kernel.decorator_list for node in ast.walk(part))
        waiting = [(path, node.id) for node in parts if isinstance(node, ast.Name)]
        while waiting:
            at, name = waiting.pop()
            meant = self.symbols.defined(at, name)
            if not isinstance(meant, Function) or meant.node.name != name or meant.node.decorator_list:
                continue
            if (meant.module.path, name) not in found and name not in self.bound:
                found[meant.module.path, name] = meant.node
                waiting += [(meant.module.path, more) for more in _free(meant.node)]
        return tuple((at, node) for (at, _), node in sorted(found.items(), key=lambda item: item[1].lineno))

    def with_names(self, item: Imported, dotted: str) -> dict[str, str] | None:
        """The imports of what a kernel needs that the file lacks; None where it has another meaning for a name."""
        found: dict[str, str] = {}
        placed = {node.name for _, node in item.helpers}
        for path, part in item.parts:
            table = self.symbols.module(path)
            assert table is not None
            imports = {name: node for node in table.tree.body for name in _bound(node) if isinstance(node, _Import)}
            every = {name for node in ast.walk(table.tree) for name in _bound(node)}
            for name in sorted(_free(part) & every - placed):
                node = imports.get(name)
                if name in self.bound:
                    here, there = (_meaning(self.symbols, at, name) for at in (self.path, path))
                    if here is None or here != there:
                        return None
                    continue
                line = f"from {dotted if self.symbols.locate(self.path, dotted) == path else _dots(self.path, path)} "
                line += f"import {name}"
                if node is not None and not getattr(node, "level", 0):
                    kept = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) == name]
                    plain = ast.Import(kept) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, kept, 0)
                    line = ast.unparse(plain)
                if found.setdefault(name, line) != line or self.needed.get(name, line) != line:
                    return None
        return found


def _free(function: ast.FunctionDef) -> set[str]:
    """The names that a function reads, but for its own."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    own = {name for node in ast.walk(function) for name in _bound(node)} - {function.name}
    return {node.id for node in names} - own


def _dotted(node: ast.ImportFrom) -> str:
    return "." * node.level + (node.module or "")


def _meaning(symbols: Symbols, path: Path, name: str) -> object:
    """What a name means in a module, to be compared."""
    found = symbols.defined(path, name)
    return (found.module.path, found.node.name) if isinstance(found, Function) else found


def _dots(file: Path, other: Path) -> str:
    """A relative import of one file in another."""
    up = next(n for n, parent in enumerate(file.parents) if other.is_relative_to(parent))
    parts = other.relative_to(file.parents[up]).with_suffix("").parts
    return "." * (up + 1) + ".".join(part for part in parts if part != "__init__")


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement, not one in it, binds."""
    if isinstance(node, _Import):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg


@lru_cache(maxsize=32)
def _parsed(text: str) -> TritonFile | None:
    try:
        return parse(text)
    except (SyntaxError, ValueError):
        return None
