"""What each name of another module is bound to, read with ``ast``."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path

from tl2npu.across.changes import Changes
from tl2npu.across.decided import decided
from tl2npu.source.text import SourceError, decode_source, read_bytes

MAX_BYTES = 1024 * 1024
"""Larger modules are not read."""


@dataclass(frozen=True, eq=False)
class Module:
    """One module: its text and tree, and what each name of its top level is bound to, in order.

    ``stars``: modules imported with ``*``. ``exports``: what ``__all__`` lists, where that is a literal.
    """

    path: Path
    text: str
    tree: ast.Module
    digest: str
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    exports: frozenset[str] | None = None
    lines: tuple[str, ...] = ()

    @cached_property
    def changes(self) -> Changes:
        """What the module may change after it has bound it."""
        return Changes.of(self.tree)


@dataclass(frozen=True, eq=False)
class Binding:
    """A function, class, value of an assignment, or import: ``attribute`` of ``dotted``, or that module itself.

    None of them: something that cannot be told. ``fallback``: one of the ways of a ``try`` or ``if``. ``unset``: the
    environment variable that must not be set for it.
    """

    function: ast.FunctionDef | None = None
    scope: ast.ClassDef | None = None
    value: ast.expr | None = None
    dotted: str | None = None
    attribute: str | None = None
    fallback: bool = False
    unset: str = ""


@lru_cache(maxsize=512)
def module_at(path: Path, _modified: int, _size: int) -> Module | None:
    """Remembered for as long as the file stays as it is."""
    try:
        data = read_bytes(path, MAX_BYTES)
        text = decode_source(data, MAX_BYTES).text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return table_of(path, text, tree, digest_of(data))


def table_of(path: Path, text: str, tree: ast.Module, digest: str) -> Module:
    """The table of a text, which is parsed."""
    table = Module(path, text, tree, digest, exports=_exports(tree), lines=tuple(text.splitlines(keepends=True)))
    for statement in tree.body:
        _collect(table, statement)
    if "global" in text:
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):  # a function changes it
                for name in node.names:
                    table.bindings.setdefault(name, []).append(Binding())
    return table


def digest_of(data: bytes) -> str:
    """The digest by which results remember the files that they rest on."""
    return blake2b(data).hexdigest()


def _collect(table: Module, statement: ast.stmt, fallback: bool = False) -> None:
    if isinstance(statement, ast.FunctionDef):
        _bind(table, statement.name, Binding(function=statement, fallback=fallback))
    elif isinstance(statement, ast.ClassDef):
        _bind(table, statement.name, Binding(scope=statement, fallback=fallback))
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            dotted = alias.name if alias.asname else alias.name.split(".")[0]
            _bind(table, alias.asname or dotted, Binding(dotted=dotted, fallback=fallback))
    elif isinstance(statement, ast.ImportFrom):
        dotted = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            if alias.name == "*":
                table.stars.append(dotted)
            else:
                binding = Binding(dotted=dotted, attribute=alias.name, fallback=fallback)
                _bind(table, alias.asname or alias.name, binding)
    elif isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        for target in statement.targets:
            assert isinstance(target, ast.Name)
            _bind(table, target.id, Binding(value=statement.value, fallback=fallback))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        _bind(table, statement.target.id, Binding(value=statement.value))
    elif isinstance(statement, ast.If):
        _collect_arms(table, statement, fallback)
    elif isinstance(statement, ast.Try):
        for inner in (*statement.body, *(item for handler in statement.handlers for item in handler.body)):
            _collect(table, inner, fallback=True)
        for inner in (*statement.orelse, *statement.finalbody):
            _collect(table, inner)
    else:
        _bind_unknown(table, statement, fallback)


def _collect_arms(table: Module, statement: ast.If, fallback: bool) -> None:
    """The arm that runs, if that can be told; of an environment variable no more than the functions that it chooses,
    defined there or, as ``exp = tl.exp``, named."""
    verdict = decided(statement.test, _values(table))
    if verdict is not None and not verdict.unset:
        for inner in verdict.arms(statement)[0]:
            _collect(table, inner, fallback)
        return
    live = verdict.arms(statement)[0] if verdict is not None else []
    chosen = {name: inner for inner in live if (name := function_name(inner))}
    for name, inner in chosen.items():
        assert verdict is not None
        function = inner if isinstance(inner, ast.FunctionDef) else None
        _bind(table, name, Binding(function, value=getattr(inner, "value", None), unset=verdict.unset))
    for inner in (*statement.body, *statement.orelse):
        imports = isinstance(inner, (ast.Import, ast.ImportFrom)) and inner.names[0].name != "*"
        if imports or isinstance(inner, ast.If):
            _collect(table, inner, fallback=True)
        elif function_name(inner) not in chosen:
            _bind_unknown(table, inner, fallback=True)


def function_name(stmt: ast.stmt) -> str:
    """The name of a function that a statement defines, or to which it gives one: ``exp = tl.exp``; empty for others."""
    match stmt:
        case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()):
            return name
    return ""


def _values(table: Module) -> dict[str, ast.expr]:
    """What the statements so far give to names."""
    found = {name: bindings[0].value for name, bindings in table.bindings.items() if len(bindings) == 1}
    return {name: value for name, value in found.items() if value is not None}


def _bind(table: Module, name: str, binding: Binding) -> None:
    table.bindings.setdefault(name, []).append(binding)


def _bind_unknown(table: Module, statement: ast.stmt, fallback: bool = False) -> None:
    for name in _bound(statement):
        _bind(table, name, Binding(fallback=fallback))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Every name that a statement may bind."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.split(".")[0]


def _exports(tree: ast.Module) -> frozenset[str] | None:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets
        ):
            try:
                value = ast.literal_eval(statement.value)
            except ValueError:
                return None
            return frozenset(item for item in value if isinstance(item, str))
    return None
