"""Names that the new text needs, in files that import operators one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_LANGUAGE = "tilelang.language"
_ALIASES = ("T", "TL", "tl", "tilelang_language")


def spelling(job: Job, operator: str, at: cst.CSTNode) -> str:
    """How this file can write ``T.<operator>``; a bare name if :func:`complete` has to import it."""
    found = job.file.names.spell(f"{_LANGUAGE}.{operator}", at=at)
    return found if found is not None else operator


def add_alias(job: Job) -> tuple[str, cst.CSTNode] | None:
    """Import the language under a name that the file does not have, below what it imports of TileLang: what passes
    write may need any operator (``T.tile.max``).

    The name and the import; None where the file has a name for the language, or no free one.
    """
    if job.file.names.spell(f"{_LANGUAGE}.any_operator", at=job.located.node) is not None:
        return None
    above = [node for node in job.module.body if _imports_tilelang(node)]
    alias = next((name for name in _ALIASES if name not in _names(job)), None)
    if alias is None or not above:
        return None
    added = cst.parse_statement(f"import {_LANGUAGE} as {alias}\n", job.module.config_for_parsing)
    edits = Edits(job.file.index)
    edits.replace_many(above[-1], [above[-1], added])
    job.apply(edits)
    return alias, added


def drop_alias(job: Job, added: tuple[str, cst.CSTNode] | None) -> None:
    """Take the import of :func:`add_alias` out again where no pass has written its name."""
    if added is not None and _names(job)[added[0]] == 1:
        edits = Edits(job.file.index)
        edits.remove(added[1])
        job.apply(edits)


def complete(job: Job, wanted: set[str], replaced: set[str]) -> None:
    """Import the ``wanted`` operators beside the others; drop the imports of ``replaced`` ones without a use."""
    statement = _import(job)
    if statement is None or isinstance(statement.names, cst.ImportStar):
        return
    imported = {code(alias.name): alias for alias in statement.names}
    missing = sorted(name for name in wanted if name not in imported)
    counts = [name.value for name in names_in(job.module)]
    gone = [n for n in sorted(replaced) if n in imported and counts.count(n) <= 1 and imported[n].asname is None]
    if not missing and not gone:
        return
    edits = Edits(job.file.index)
    last = statement.names[-1]
    kept: list[cst.ImportAlias] = [last]
    for name in gone:
        alias = imported[name]
        new = [cst.ImportAlias(cst.Name(missing.pop(0)))] if missing else []
        if alias is last:
            kept = new
        elif new:
            edits.replace(alias, new[0])
        else:
            edits.remove(alias)
    kept += [cst.ImportAlias(cst.Name(name)) for name in missing]
    if kept != [last]:
        edits.replace_many(last, kept)
    job.apply(edits)


def drop_unused(job: Job, bound: set[str]) -> None:
    """Drop the imports of these names, wherever from, where nothing uses them any more."""
    counts = _names(job)
    edits = Edits(job.file.index)
    for node in job.file.index.statements:
        if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        gone = [a for a in node.names if a.asname is None and code(a.name) in bound and counts[code(a.name)] <= 1]
        remove_names(edits, node, gone)
    job.apply(edits)


def remove_names(edits: Edits, node: cst.ImportFrom, gone: Sequence[cst.ImportAlias]) -> None:
    """Drop names of an import, or all of it."""
    assert not isinstance(node.names, cst.ImportStar)
    for part in (node,) if len(gone) == len(node.names) else gone:
        edits.remove(part)


def _import(job: Job) -> cst.ImportFrom | None:
    for node in job.file.index.statements:
        if isinstance(node, cst.ImportFrom) and node.module is not None and code(node.module) == _LANGUAGE:
            return node
    return None


def _names(job: Job) -> Counter[str]:
    return Counter(name.value for name in names_in(job.module)) + job.elsewhere


def _imports_tilelang(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.ImportFrom):
        return False
    module = node.body[0].module
    return module is not None and code(module).split(".")[0] == "tilelang"
