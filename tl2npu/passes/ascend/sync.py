"""TL303 to TL306, TL308: manual synchronisation goes where the automatic passes cover what it protected."""

from __future__ import annotations

from collections.abc import Container, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.model import Branch, Inlined, Kernel, Let, Loop, Op, Stmt, Sync, children
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, names_in

_RULE = {
    "barrier_all": ("TL303", "AUTO_SYNC synchronises the pipes of a core"),
    "pipe_barrier": ("TL303", "AUTO_SYNC synchronises the pipes of a core"),
    "set_flag": ("TL304", "AUTO_SYNC synchronises the pipes of a core"),
    "wait_flag": ("TL304", "AUTO_SYNC synchronises the pipes of a core"),
    "set_cross_flag": ("TL305", "AUTO_CV_SYNC synchronises every cross-core transfer"),
    "wait_cross_flag": ("TL305", "AUTO_CV_SYNC synchronises every cross-core transfer"),
    "sync_all": ("TL306", "no data passes between blocks"),
}


def is_address(stmt: Stmt) -> bool:
    """``T.annotate_address``: MEMORY_PLANNING assigns the addresses."""
    return isinstance(stmt, Op) and stmt.op.kind is Kind.ANNOTATION and stmt.op.name == "annotate_address"


IN_A_CORE = frozenset({"barrier_all", "pipe_barrier", "set_flag", "wait_flag"})
"""What orders the pipes of one core."""


def _only_sync(stmt: Stmt, names: Container[str]) -> bool:
    """True if nothing but synchronisation of these names happens in a statement."""
    if isinstance(stmt, Sync):
        return stmt.op.name in names
    if isinstance(stmt, Inlined):  # what it names and annotates goes with it
        rest = [s for s in stmt.body if not (is_address(s) or _only_names(s, stmt.definition))]
        goes = bool(rest) or any(is_address(s) for s in stmt.body)
        return goes and all(_only_sync(s, names) for s in rest)
    if isinstance(stmt, (Loop, Branch)):
        inner = [s for body in children(stmt) for s in body]
        return bool(inner) and all(_only_sync(s, names) for s in inner)
    return False


def _only_names(stmt: Stmt, macro: cst.FunctionDef) -> bool:
    """``name = value`` in a macro that means nothing outside of it: no parameter, no call."""
    if not isinstance(stmt, Let) or not isinstance(stmt.node, cst.Assign):
        return False
    params = (*macro.params.posonly_params, *macro.params.params, *macro.params.kwonly_params)
    return not any(param.name.value == stmt.name for param in params) and not calls_in(stmt.node.value)


def only_sync(stmt: Stmt) -> bool:
    """True if a statement does nothing but synchronise."""
    return _only_sync(stmt, _RULE)


def has_flags(kernel: Kernel) -> bool:
    """True if any barrier or flag is left."""
    return any(isinstance(stmt, Sync) for stmt in kernel.walk())


def remove_sync(job: Job, names: Container[str] = _RULE) -> None:
    """Remove manual synchronisation, and address annotations; whoever calls this has proved that it may go.

    ``names``: the operators to remove, all of them by default.
    """
    edits = Edits(job.file.index)
    done: set[int] = set()
    helpers: dict[str, cst.FunctionDef] = {}
    _remove(job, job.kernel.body, edits, done, helpers, names)
    if not done:
        return
    job.apply(edits)
    _drop_helpers(job, set(helpers))


def _remove(
    job: Job,
    body: Sequence[Stmt],
    edits: Edits,
    done: set[int],
    helpers: dict[str, cst.FunctionDef],
    names: Container[str],
) -> None:
    for stmt in body:
        if (isinstance(stmt, Sync) and stmt.op.name in names) or is_address(stmt):
            assert isinstance(stmt, (Sync, Op))
            rule, why = _RULE.get(stmt.op.name, ("TL308", "MEMORY_PLANNING assigns the addresses"))
            _once(job, stmt.node, edits, done, rule, f"T.{stmt.op.name}: {why}")
        elif _only_sync(stmt, names):
            if isinstance(stmt, Inlined):
                helpers[stmt.callee] = stmt.definition
            rule, what = ("TL305", "only synchronised") if _synchronises(stmt) else ("TL308", "only assigned addresses")
            _once(job, stmt.node, edits, done, rule, what)
        else:
            for inner in children(stmt):
                _remove(job, inner, edits, done, helpers, names)


def _synchronises(stmt: Stmt) -> bool:
    return isinstance(stmt, Sync) or any(_synchronises(inner) for body in children(stmt) for inner in body)


def _once(job: Job, node: cst.CSTNode, edits: Edits, done: set[int], rule: str, message: str) -> None:
    if id(node) not in done:
        done.add(id(node))
        edits.remove(node)
        job.change(rule, node, message)


def _drop_helpers(job: Job, names: set[str]) -> None:
    """Macros that only wrapped synchronisation go with their last use."""
    for name in sorted(names):
        definition = next(
            (f for f in job.file.index.statements if isinstance(f, cst.FunctionDef) and f.name.value == name), None
        )
        if definition is None:
            continue
        uses = [n for n in names_in(job.module) if n.value == name and n is not definition.name]
        if not uses:
            edits = Edits(job.file.index)
            edits.remove(definition)
            job.change("TL305", definition, f"removed `{name}`, which only wrapped manual synchronisation")
            job.apply(edits)
