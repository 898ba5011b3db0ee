"""TL780 to TL782: accesses that nothing orders, in a kernel that synchronises its pipes or its cores by hand.

What ``tl2npu run`` finds with the data of one launch, from the text (:mod:`tl2npu.kernel.flags.clocks`). AUTO_SYNC
orders the pipes of a core in every mode (``src/transform/ascend_sync_insert.cc``), AUTO_CV_SYNC the cores only where
COMBINE divides the work (``src/transform/ascend_combinecv.cc``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from tl2npu.checks.cross_core.channels import on_chip
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.factories.configs import COMBINE, CV_SYNC, SYNC
from tl2npu.kernel.flags.clocks import Run
from tl2npu.kernel.flags.parts import GiveUp
from tl2npu.kernel.flags.seen import Conflict, Stuck
from tl2npu.kernel.model import Branch, Copy, Loop, Op, ScopeBlock, Side, Stmt, Sync

_CALLERS = 2
_CORES = {Side.CUBE: "cube core", Side.VECTOR: "vector cores"}


def check(subject: Subject) -> Iterator[Finding]:
    """Findings for the first calls of the factory that differ."""
    pipes, combined = subject.is_on(SYNC), subject.is_on(COMBINE)
    if pipes is None or combined is None:
        return
    scopes = any(isinstance(placed.stmt, ScopeBlock) for placed in subject.statements)
    manual = scopes or any(isinstance(placed.stmt, Sync) for placed in subject.statements)
    crossing = subject.is_mixed and not (combined and subject.is_on(CV_SYNC))
    if not manual or (pipes and not crossing) or (subject.is_mixed and not scopes and not combined):
        return
    if on_chip(subject) or (combined and subject.is_mixed and any(map(_is_pipeline, subject.kernel.walk()))):
        return
    cores = tuple(side for side in _CORES if side in subject.sides)
    told: set[tuple[int, str]] = set()
    for values, vid in product(subject.every_value[:_CALLERS], _vector_cores(subject)):
        run = Run(subject.kernel, subject.located.evaluator, values, not pipes, scopes, cores, vid)
        try:
            run.go()
        except GiveUp:
            return
        for conflict in run.conflicts:
            key = (id(conflict.second.stmt), conflict.second.touch.buffer.name)
            one_core = conflict.first.side is conflict.second.side
            if key not in told and (one_core or (crossing and run.crosses)) and not _has_versions(subject, conflict):
                told.add(key)
                yield _of(conflict)
        for stuck in run.stuck if crossing and run.exact else ():
            if (id(stuck.stmt), "") not in told:
                told.add((id(stuck.stmt), ""))
                yield _stuck(stuck)


def _vector_cores(subject: Subject) -> Iterable[int]:
    """Both where a condition tells them apart."""
    vid = subject.kernel.vid
    branches = (stmt for stmt in subject.kernel.walk() if isinstance(stmt, Branch))
    return (0, 1) if vid and any(vid in stmt.cond.sym.variables() for stmt in branches) else (0,)


def _is_pipeline(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind == "pipelined"


def _has_versions(subject: Subject, conflict: Conflict) -> bool:
    """Both in one ``T.Pipelined``: the compiler may give each turn a tile of its own, and changes their order."""
    if conflict.is_read:
        return False
    loops = [
        {id(parent) for parent in placed.parents if _is_pipeline(parent)}
        for stmt in (conflict.first.stmt, conflict.second.stmt)
        for placed in subject.statements
        if placed.stmt is stmt
    ]
    return bool(set.intersection(*loops)) if loops else False


def _of(conflict: Conflict) -> Finding:
    first, second = conflict.first, conflict.second
    name = second.touch.buffer.name
    if first.side is not second.side:
        how = f"no cross-core flag makes the {_CORES[second.side]} wait for the {_CORES[first.side]}"
    else:
        how = f"nothing makes pipe {second.touch.pipe} wait for pipe {first.touch.pipe}"
    if conflict.is_read:
        return Finding("TL780", second.stmt.node, f"`{name}` is read before {_shown(first.stmt)} has written it: {how}")
    done = "written" if first.touch.writes else "read"
    text = f"`{name}` is overwritten before {_shown(first.stmt)} has {done} it: {how}"
    return Finding("TL781", second.stmt.node, text)


def _shown(stmt: Stmt) -> str:
    if isinstance(stmt, Copy):
        return f"the copy from `{stmt.src.buffer.name}` to `{stmt.dst.buffer.name}`"
    return f"T.{stmt.op.name}" if isinstance(stmt, Op) else "the scalar unit"


def _stuck(stuck: Stuck) -> Finding:
    """A flag between the cores that is waited for and never set, or set and never waited for."""
    core, flag = _CORES[stuck.side], stuck.flag
    if stuck.is_set:
        text = f"the {core} set cross-core flag {flag} more often than the other core waits for it"
    else:
        text = f"deadlock: the {core} wait for cross-core flag {flag} more often than it is set"
    return Finding("TL782", stuck.stmt.node, text)
