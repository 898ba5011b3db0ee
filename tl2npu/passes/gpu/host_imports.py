"""Imports of host code: those that the migration leaves without a use, and those that it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import names_in, walk


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
    original: cst.Module, module: cst.Module, roots: Sequence[str] = ("tilelang", "tvm")
) -> tuple[cst.Module, list[tuple[cst.CSTNode, str]]]:
    """The module without imports from some packages that lost their last use; (statement, name) of each."""
    before, now = _uses(original), _uses(module)
    index = Index.of(module)
    edits = Edits(index)
    gone: list[tuple[cst.CSTNode, str]] = []
    for node in index.statements:
        if not isinstance(node, (cst.Import, cst.ImportFrom)) or isinstance(node.names, cst.ImportStar):
            continue
        unused = [a for a in node.names if before[_bound(a)] and not now[_bound(a)] and _is_from(node, a, roots)]
        if unused and len(unused) == len(node.names):
            edits.remove(node)
        else:
            for alias in unused:
                edits.remove(alias)
        gone += [(node, _bound(alias)) for alias in unused]
    return edits.apply(module), gone


def _is_from(node: cst.Import | cst.ImportFrom, alias: cst.ImportAlias, roots: Sequence[str]) -> bool:
    module: cst.BaseExpression | None = node.module if isinstance(node, cst.ImportFrom) else alias.name
    while isinstance(module, cst.Attribute):
        module = module.value
    return isinstance(module, cst.Name) and module.value in roots


def _bound(alias: cst.ImportAlias) -> str:
    name: cst.BaseExpression = alias.asname.name if alias.asname is not None else alias.name
    while isinstance(name, cst.Attribute):
        name = name.value
    return name.value if isinstance(name, cst.Name) else ""


def _uses(module: cst.Module) -> Counter[str]:
    """How often a name is used outside of imports; strings that name something count, too."""
    return Counter(_used_names(module))


def _used_names(node: cst.CSTNode) -> Iterator[str]:
    imported = {
        id(name) for part in walk(node) if isinstance(part, (cst.Import, cst.ImportFrom)) for name in names_in(part)
    }
    for found in names_in(node):
        if id(found) not in imported:
            yield found.value
    for text in walk(node):
        if isinstance(text, cst.SimpleString) and len(text.value) < 60:
            yield str(text.evaluated_value)
