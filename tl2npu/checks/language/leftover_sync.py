"""TL814: scopes, flags and barriers of the author beside AUTO_CV_COMBINE, which divides the work itself.

A flag or barrier names no buffer: it goes to the core of the statement before it, and is dropped where there is none
(``src/transform/ascend_combinecv.cc``, ``current_proccess_switch_``). The other passes take all of them as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.cross_core.unordered import missed
from tl2npu.checks.operators.vector_form import parallel_store
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.kernel.factories.configs import COMBINE, CV_SYNC, SYNC
from tl2npu.kernel.flags.automatic import core_of
from tl2npu.kernel.flags.pipes import named_pipe
from tl2npu.kernel.model import Copy, Op, ScopeBlock, Side, Store, Sync

_CORES = {Side.CUBE: "cube core", Side.VECTOR: "vector cores"}
_OF = {"MTE1": Side.CUBE, "M": Side.CUBE, "FIX": Side.CUBE, "V": Side.VECTOR, "MTE3": Side.VECTOR}
_BARRIERS = ("barrier_all", "pipe_barrier")
_FLAGS = ("set_flag", "wait_flag")
_EVENTS = 8
_BOTH = "T.{} and the automatic passes are both in use"


def check(subject: Subject) -> Iterator[Finding]:
    """The first statement of each kind that cannot stay; as a warning what does nothing."""
    if not subject.is_on(COMBINE):
        return
    seen: set[str] = set()
    core = Side.NONE
    for placed in subject.statements:
        core = _core_after(subject, placed, core)
        stmt = placed.stmt
        if not isinstance(stmt, (ScopeBlock, Sync)):
            continue
        name = "Scope" if isinstance(stmt, ScopeBlock) else stmt.op.name
        if name in seen or name == "sync_all":
            continue
        found = _of_scope(subject, stmt) if isinstance(stmt, ScopeBlock) else _of_sync(subject, placed, stmt, core)
        if found is not None:
            seen.add(name)
            yield found


def _core_after(subject: Subject, placed: Placed, before: Side) -> Side:
    stmt = placed.stmt
    store = parallel_store(subject, placed) if isinstance(stmt, Store) else None
    if isinstance(stmt, (Copy, Op)) or (store is not None and store.form != "scalar"):
        return core_of(stmt) or before
    return before


def _of_scope(subject: Subject, stmt: ScopeBlock) -> Finding | None:
    node = stmt.node.items[0] if isinstance(stmt.node, cst.With) else stmt.node
    return Finding("TL814", node, _BOTH.format("Scope"), "warning" if subject.threads is None else None)


def _of_sync(subject: Subject, placed: Placed, stmt: Sync, core: Side) -> Finding | None:
    name = stmt.op.name
    if name == "barrier_all" and len(missed(subject)) < len(missed(subject, bare=True)):
        return None  # it is needed
    if subject.threads is not None:
        return Finding("TL814", stmt.node, _BOTH.format(name))
    scope = next((parent.side for parent in placed.parents if isinstance(parent, ScopeBlock)), None)
    meant = {scope} - {None} | {_OF[pipe] for pipe in _pipes(stmt) if pipe in _OF}
    if core is Side.NONE and name not in _BARRIERS:
        text = f"no statement stands before T.{name}: AUTO_CV_COMBINE assigns it to no core and drops it"
        return Finding("TL814", stmt.node, text)
    if core in _CORES and meant - {core} and name not in _BARRIERS:
        text = f"T.{name} goes to the {_CORES[core]}, as the statement before it does"
        return Finding("TL814", stmt.node, text)
    if name in _FLAGS and subject.is_on(SYNC) and not _is_apart(subject, placed, stmt):
        return Finding("TL814", stmt.node, f"T.{name} may use a number that the automatic flags use too")
    if name not in _BARRIERS + _FLAGS and subject.is_on(CV_SYNC):
        return Finding("TL814", stmt.node, f"T.{name} may use a number that the automatic flags use too")
    return Finding("TL814", stmt.node, _BOTH.format(name), "warning") if subject.is_on(SYNC) else None


def _is_apart(subject: Subject, placed: Placed, stmt: Sync) -> bool:
    """A number that AUTO_SYNC does not use (``AllocateEventId``: 0 to 7), or a wait right behind its set."""
    event = stmt.args["eventId"].sym.constant if "eventId" in stmt.args else None
    if event is not None and event >= _EVENTS:
        return True
    step = 1 if stmt.op.name == "set_flag" else -1
    beside = placed.order + step
    other = subject.statements[beside].stmt if 0 <= beside < len(subject.statements) else None
    return isinstance(other, Sync) and other.op.name in _FLAGS and other.op is not stmt.op and _same(stmt, other)


def _same(left: Sync, right: Sync) -> bool:
    return all(left.text(name) == right.text(name) for name in ("src", "dst", "eventId"))


def _pipes(stmt: Sync) -> list[str]:
    found = [named_pipe(stmt, name) for name in ("src", "dst", "pipe")]
    return [pipe for pipe in found if pipe]
