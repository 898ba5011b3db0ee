"""TL204: names that only served vid or a workspace go with their last use."""

from __future__ import annotations

from collections import Counter

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.passes.names.assignments import bound, take_out
from tl2npu.passes.names.definitions import enclosing_functions
from tl2npu.source.edits import Edits
from tl2npu.source.literals import text_of
from tl2npu.source.tree import calls_in, last_name, names_in, nodes_of, remembered


def name_counts(job: Job) -> Counter[str]:
    """How often each name is used or bound in the file.

    ``f.name`` counts inside of ``f`` only, the kernel or a function around it: others may have locals of that name.
    """
    found = Counter(name.value for name in names_in(job.module)) + job.elsewhere
    for function in _functions(job):
        found.update(f"{function.name.value}.{name.value}" for name in names_in(function))
    return found


def authors_names(job: Job) -> frozenset[str]:
    """The names of the file as it came, and those that the kernel has now: what passes add later has others."""
    return frozenset(name.value for node in (job.original.module, job.located.node) for name in names_in(node))


def _functions(job: Job) -> list[cst.FunctionDef]:
    return [*enclosing_functions(job), job.located.node]


def drop_unused_names(job: Job, before: Counter[str]) -> None:
    """Remove plain assignments whose name was used before the migration and is not any more."""
    start = job.module
    while True:
        now = name_counts(job)
        functions = _functions(job)
        edits = Edits(job.file.index)
        for node in job.file.index.statements:
            scope = job.file.index.enclosing(node, cst.FunctionDef, cst.ClassDef)
            if isinstance(scope, cst.ClassDef):
                continue  # an attribute: reading it is no use of the name
            prefix = ""
            if (
                isinstance(scope, cst.FunctionDef)
                and scope in functions
                and not nodes_of(scope, cst.Global, cst.Nonlocal)
            ):
                prefix = f"{scope.name.value}."
            gone = [
                name
                for name, value in bound(node)
                if now[prefix + name] == 1 and before[prefix + name] > 1 and is_harmless(value)
            ]
            if gone and scope is None:
                gone = [name for name in gone if name not in _strings(start)]
                gone = [name for name in gone if job.users is None or not job.users.may_take(name)]
            if gone:
                assert isinstance(node, (cst.Assign, cst.AnnAssign))
                take_out(edits, node, gone)
                job.change("TL204", node, f"removed the unused `{'`, `'.join(gone)}`")
        if not edits:
            return
        job.apply(edits)


@remembered
def _strings(module: cst.Module) -> set[str]:
    """Strings of the file that name something, as ``__all__`` and ``getattr`` do."""
    return {str(text_of(node)) for node in nodes_of(module, cst.SimpleString) if len(node.value) < 80}


def is_harmless(node: cst.BaseExpression) -> bool:
    """Evaluating it does nothing: numbers, names, arithmetic, T.ceildiv."""
    for call in calls_in(node):
        if last_name(call.func) not in ("ceildiv", "cdiv", "min", "max", "int", "floordiv"):
            return False
    return not nodes_of(node, cst.Await, cst.Yield, cst.NamedExpr, cst.Lambda)
