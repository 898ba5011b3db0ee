"""What only served code that is gone: variables, functions and imports without a use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.passes.names.imports import remove_names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import bound_name, last_name, names_in, nodes_of, walk

_CALLS = ("Layout", "Fragment")
"""Endings of the names of functions that make a layout and do nothing else."""


def remove_statements(job: Job, edits: Edits, statements: Sequence[cst.CSTNode]) -> None:
    """Remove statements, and every ``if`` that has nothing else to run."""
    gone = {id(statement) for statement in statements}
    doomed: dict[int, cst.CSTNode] = {id(statement): statement for statement in statements}
    grown = True
    while grown:
        grown = False
        for statement in list(doomed.values()):
            around = job.file.index.enclosing(statement, cst.If)
            if around is None or id(around) in gone or around.orelse is not None:
                continue
            if isinstance(job.file.index.parent(around), cst.If):
                continue  # an `elif`: the condition decides whether what follows runs
            if _all_gone(around.body, gone):
                gone.add(id(around))
                doomed = {k: v for k, v in doomed.items() if all(a is not around for a in job.file.index.ancestors(v))}
                doomed[id(around)] = around
                grown = True
                break
    for statement in doomed.values():
        edits.remove(statement)


def _all_gone(body: cst.BaseSuite, gone: set[int]) -> bool:
    for statement in body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            if not all(id(small) in gone or isinstance(small, cst.Pass) for small in statement.body):
                return False
        elif id(statement) not in gone:
            return False
    return True


def drop_leftovers(job: Job, removed: Sequence[cst.CSTNode], code: str = "TL115") -> None:
    """Remove definitions that only the ``removed`` code used: assignments, functions of the module, imports."""
    candidates = {name.value for node in removed for name in names_in(node)}
    while candidates:
        counts = Counter(name.value for name in names_in(job.module)) + job.elsewhere
        edits = Edits(job.file.index)
        found: list[cst.CSTNode] = []
        for node in job.file.index.statements:
            target = _defined(node)
            if target in candidates and counts[target] == 1 and not _exported(job, node, target):
                edits.remove(node)
                found.append(node)
                job.change(code, node, f"removed the unused `{target}`")
        _drop_imports(job, edits, {name for name in candidates if counts[name] <= 1})
        job.apply(edits)
        candidates = {name.value for node in found for name in names_in(node)}


def _defined(node: cst.CSTNode) -> str:
    """The name that a statement defines without doing anything else; empty for any other statement."""
    if isinstance(node, cst.FunctionDef):
        return node.name.value
    if isinstance(node, cst.Assign) and len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name):
        return node.targets[0].target.value if _is_harmless(node.value) else ""
    return ""


def _is_harmless(node: cst.BaseExpression) -> bool:
    for inner in walk(node):
        if isinstance(inner, cst.Call):
            name = last_name(inner.func)
            if not (name.endswith(_CALLS) or "layout" in name.lower()):
                return False
        elif isinstance(inner, (cst.Await, cst.Yield, cst.NamedExpr)):
            return False
    return True


def _exported(job: Job, node: cst.CSTNode, name: str) -> bool:
    """A name of the module that other code reaches by a string, or that another file of the repository imports."""
    if job.file.index.enclosing(node, cst.FunctionDef) is not None:
        return False
    if job.users is not None and job.users.may_take(name):
        return True
    strings = (found for found in nodes_of(job.module, cst.SimpleString) if len(found.value) < 80)
    return any(found.evaluated_value == name for found in strings)


def _drop_imports(job: Job, edits: Edits, unused: set[str]) -> None:
    for node in job.file.index.statements:
        if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        gone = [
            alias for alias in node.names if bound_name(alias) in unused and not _used(job, node, bound_name(alias))
        ]
        remove_names(edits, node, gone)
        for alias in gone:
            job.change("TL115", node, f"removed the unused `{bound_name(alias)}`")


def _used(job: Job, statement: cst.CSTNode, name: str) -> bool:
    own = {id(found) for found in names_in(statement)}
    return bool(job.elsewhere[name]) or any(
        found.value == name and id(found) not in own for found in names_in(job.module)
    )
