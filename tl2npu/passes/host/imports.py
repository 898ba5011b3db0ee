"""Imports of host code: those that the migration leaves without a use, and those that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import libcst as cst

from tl2npu.dialects.absent import ABSENT
from tl2npu.kernel.expressions import code
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.tree import bound_name, names_in, nodes_of


def add_import(index: Index, edits: Edits, text: str) -> None:
    """Import something before the first import of the file; once, however often it is asked for."""
    line = cst.parse_statement(text)
    for statement in index.module.body:
        if isinstance(statement, cst.SimpleStatementLine) and _imports(statement):
            if any(node is statement for node in edits.nodes):
                return
            edits.replace_many(statement, [line, statement.with_changes(leading_lines=())])
            return


def _imports(line: cst.SimpleStatementLine) -> bool:
    future = "__future__"
    return any(
        isinstance(small, cst.Import)
        or (isinstance(small, cst.ImportFrom) and getattr(small.module, "value", "") != future)
        for small in line.body
    )


def without_unused(
    original: cst.Module, index: Index, roots: Sequence[str] = ("tilelang", "tvm")
) -> tuple[cst.Module, list[tuple[cst.CSTNode, str]]]:
    """The module without imports from some packages that lost their last use; (statement, name) of each.

    An import that fails on an NPU goes, too, if nothing uses its name and nothing did.
    """
    module = index.module
    unused = _unused_aliases(original, module, roots)
    if not unused:
        return module, []
    edits = Edits(index)
    gone: list[tuple[cst.CSTNode, str]] = []
    whole = {id(node) for node, aliases in unused if len(aliases) == len(node.names)}  # type: ignore[arg-type]
    inside: set[int] = set()
    for attempt in nodes_of(module, cst.Try):
        assert isinstance(attempt, cst.Try)
        parts = _statements(attempt)
        if parts and set(map(id, parts)) <= whole:
            edits.remove(attempt)
            inside.update(map(id, parts))
    for node, aliases in unused:
        if id(node) in inside:
            pass
        elif id(node) in whole:
            edits.remove(node)
        else:
            for alias in aliases:
                edits.remove(alias)
        gone += [(node, bound_name(alias)) for alias in aliases]
    return edits.apply(module), gone


def _statements(attempt: cst.Try) -> list[cst.BaseSmallStatement]:
    """All that a ``try`` of single statements does, in any case; nothing of any other ``try``."""
    blocks = [attempt.body, *(handler.body for handler in attempt.handlers)]
    lines = [line for block in blocks for line in block.body]
    if attempt.orelse is not None or attempt.finalbody is not None:
        return []
    if not all(isinstance(line, cst.SimpleStatementLine) for line in lines):
        return []
    return [small for line in lines if isinstance(line, cst.SimpleStatementLine) for small in line.body]


def _unused_aliases(
    original: cst.Module, module: cst.Module, roots: Sequence[str]
) -> list[tuple[cst.Import | cst.ImportFrom, list[cst.ImportAlias]]]:
    imports = cast("Sequence[cst.Import | cst.ImportFrom]", nodes_of(module, cst.Import, cst.ImportFrom))
    candidates = [
        (node, [alias for alias in node.names if _is_from(node, alias, roots)])
        for node in imports
        if not isinstance(node.names, cst.ImportStar)
    ]
    if not any(aliases for _, aliases in candidates):
        return []
    used = _used_names(module)
    lost = _used_names(original) - used

    def goes(node: cst.Import | cst.ImportFrom, alias: cst.ImportAlias) -> bool:
        return bound_name(alias) in lost or (bound_name(alias) not in used and _is_absent(node, alias))

    unused = [(node, [alias for alias in aliases if goes(node, alias)]) for node, aliases in candidates]
    return [(node, aliases) for node, aliases in unused if aliases]


def _is_from(node: cst.Import | cst.ImportFrom, alias: cst.ImportAlias, roots: Sequence[str]) -> bool:
    module: cst.BaseExpression | None = node.module if isinstance(node, cst.ImportFrom) else alias.name
    while isinstance(module, cst.Attribute):
        module = module.value
    return isinstance(module, cst.Name) and module.value in roots


def _is_absent(node: cst.Import | cst.ImportFrom, alias: cst.ImportAlias) -> bool:
    """True for a module or name that TileLang for the NPU lacks."""
    relative = isinstance(node, cst.ImportFrom) and bool(node.relative)
    module = [code(node.module)] if isinstance(node, cst.ImportFrom) and node.module is not None else []
    parts = ".".join([*module, code(alias.name)]).split(".")
    return not relative and any(".".join(parts[:end]) in ABSENT for end in range(2, len(parts) + 1))


def _used_names(module: cst.Module) -> set[str]:
    """The names used outside of imports; strings that name something count, too."""
    imported = {id(name) for part in nodes_of(module, cst.Import, cst.ImportFrom) for name in names_in(part)}
    strings = (str(text_of(node)) for node in nodes_of(module, cst.SimpleString) if len(node.value) < 60)
    return {name.value for name in names_in(module) if id(name) not in imported}.union(strings)
