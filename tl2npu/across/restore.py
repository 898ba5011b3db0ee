"""Takes out what was put into a file (:mod:`tl2npu.across.grafts`), and the imports that have lost their use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import libcst as cst

from tl2npu.across.grafts import Grafted
from tl2npu.across.imports import DOT
from tl2npu.results import FileResult
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.tree import bound_name, names_in, nodes_of, walk

Gone = list[tuple[cst.CSTNode, str]]
"""What went with its last use: the statement of the file, and the name."""

_LONGEST_NAME = 80


class Kept(Exception):
    """The new text needs something of another file that it does not import."""


def restored(done: Grafted, module: cst.Module, path: str) -> tuple[cst.Module, Gone]:
    """The module without its grafts, and without assignments of macros and imports that nothing uses any more.

    Raises :class:`Kept` where the module cannot do without a graft.
    """
    if not done.grafts and not done.texts:
        return module, []
    bare = _without_grafts(done, module)
    after = _counts(bare)
    for graft in done.grafts:
        if not graft.imported and after[graft.name]:
            raise Kept(f"`{graft.name}` would have to be imported")
    bare = _at_first_hand(bare, {graft.name: graft.through for graft in done.grafts if graft.through is not None})
    gone: Gone = []
    if Path(path).name != "__init__.py":  # what a package imports, others take from it
        names = {graft.name.split(DOT)[0] for graft in done.grafts if graft.imported}
        bare = _without_makers(done, bare, gone, names)
        bare = _without_imports(bare, names, _counts(done.index.module), gone)
    return _with_dots(bare, done.texts), [(node, done.texts.get(name, name)) for node, name in gone]


def _with_dots(module: cst.Module, texts: Mapping[str, str]) -> cst.Module:
    """``module.name`` as attributes again."""
    index = Index.of(module)
    edits = Edits(index)
    for name in names_in(module):
        if name.value in texts:
            new = cst.parse_expression(texts[name.value])
            edits.replace(name, new.with_changes(lpar=name.lpar, rpar=name.rpar))
    return edits.apply(module)


def with_dots(result: FileResult, texts: Mapping[str, str]) -> FileResult:
    """What is said of ``module.name`` calls it so."""
    longest_first = sorted(texts, key=len, reverse=True)

    def said(text: str) -> str:
        for name in longest_first if DOT in text else ():
            text = text.replace(name, texts[name])
        return text

    return replace(
        result,
        kernels=tuple(replace(kernel, reason=said(kernel.reason)) for kernel in result.kernels),
        diagnostics=tuple(replace(item, message=said(item.message)) for item in result.diagnostics),
        changes=tuple(replace(item, message=said(item.message)) for item in result.changes),
    )


def _without_grafts(done: Grafted, module: cst.Module) -> cst.Module:
    index = Index.of(module)
    own = {id(graft.node) for graft in done.grafts}
    edits = Edits(index)
    for statement in index.statements:
        line = index.parent(statement) if isinstance(statement, cst.BaseSmallStatement) else statement
        if line is not None and id(line) in own:
            edits.remove(line)
    module = edits.apply(module)
    anchors = {id(graft.anchor): graft for graft in done.grafts}
    for node in walk(module):
        if id(node) in anchors:
            raise Kept(f"`{anchors[id(node)].name}` of another file was changed")
    return module


def _at_first_hand(module: cst.Module, through: Mapping[str, str]) -> cst.Module:
    """The module with imports of TileLang itself for those of objects that stand in for it: name -> the module.

    They have members of their own, ``PassConfigKey`` for one, which know nothing of an NPU.
    """
    index = Index.of(module)
    edits = Edits(index)
    for node in index.statements if through else ():
        aliases = list(node.names) if isinstance(node, cst.ImportFrom) and isinstance(node.names, Sequence) else []
        own = [alias for alias in aliases if bound_name(alias) in through]
        line = index.parent(node)
        if not own or line is None:
            continue
        named = [(through[name], name) for name in map(bound_name, own)]
        lines = [f"import {whole} as {name}" if name != whole else f"import {name}" for whole, name in named]
        rest = [line] if len(own) < len(aliases) else []
        for alias in own if rest else ():
            edits.remove(alias)
        edits.replace_many(line, [*map(cst.parse_statement, sorted(lines)), *rest])
    return edits.apply(module)


def _without_makers(done: Grafted, module: cst.Module, gone: Gone, names: set[str]) -> cst.Module:
    """Assignments of macros that are all written out; what they called may have lost its use as well."""
    index = Index.of(module)
    edits = Edits(index)
    for statement in {id(made): made for made in done.made.values()}.values():
        if statement not in index:
            continue
        targets = [name for name, owner in done.made.items() if owner is statement]
        counts = _counts(index.enclosing(statement, cst.FunctionDef) or module)
        if all(counts[name] == 1 for name in targets):
            edits.remove(statement)
            gone += [(statement, name) for name in targets]
            names |= {name.value.split(DOT)[0] for name in names_in(statement.value)}
    return edits.apply(module)


def _without_imports(module: cst.Module, names: set[str], before: Counter[str], gone: Gone) -> cst.Module:
    counts = _counts(module)
    exported = {text_of(node) for node in nodes_of(module, cst.SimpleString) if len(node.value) < _LONGEST_NAME}
    index = Index.of(module)
    edits = Edits(index)
    for node in index.statements:
        if not isinstance(node, (cst.Import, cst.ImportFrom)) or isinstance(node.names, cst.ImportStar):
            continue
        if _is_guarded(index, node):
            continue
        unused = [
            alias
            for alias in node.names
            if (name := bound_name(alias)) in names and name not in exported and counts[name] == 1 < before[name]
        ]
        for item in unused if len(unused) < len(node.names) else [node]:
            edits.remove(item)
        gone += [(node, bound_name(alias)) for alias in unused]
    return edits.apply(module)


def _is_guarded(index: Index, node: cst.Import | cst.ImportFrom) -> bool:
    """In a ``try``, or with a comment for linters: it is there for a reason that cannot be seen."""
    line = index.parent(node)
    comment = line.trailing_whitespace.comment if isinstance(line, cst.SimpleStatementLine) else None
    return index.enclosing(node, cst.Try) is not None or (comment is not None and "noqa" in comment.value)


def _counts(node: cst.CSTNode) -> Counter[str]:
    """How often names are mentioned; ``module.name`` counts for ``module``."""
    found: Counter[str] = Counter()
    for name in names_in(node):
        found[name.value.split(DOT)[0]] += 1
        if DOT in name.value:
            found[name.value] += 1
    return found
