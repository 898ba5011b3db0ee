"""TL780 to TL782: accesses that nothing orders, in a kernel that synchronises its pipes or its cores by hand.

What ``tl2npu run`` finds with the data of one launch, from the text (:mod:`tl2npu.kernel.flags.clocks`). AUTO_SYNC
orders the pipes of a core in every mode (``src/transform/ascend_sync_insert.cc``), AUTO_CV_SYNC the cores only where
COMBINE divides the work (``src/transform/ascend_combinecv.cc``).
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.cross_core.channels import on_chip
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.factories.configs import COMBINE, CV_SYNC, SYNC
from tl2npu.kernel.flags.clocks import Conflict, Run, Stuck
from tl2npu.kernel.flags.parts import GiveUp
from tl2npu.kernel.model import Copy, Op, ScopeBlock, Side, Stmt, Sync

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
    if on_chip(subject):
        return
    cores = tuple(side for side in _CORES if side in subject.sides)
    told: set[tuple[int, str]] = set()
    for values in subject.every_value[:_CALLERS]:
        run = Run(subject.kernel, subject.located.evaluator, values, not pipes, scopes, cores)
        try:
            run.go()
        except GiveUp:
            return
        for conflict in run.conflicts:
            key = (id(conflict.second.stmt), conflict.second.touch.buffer.name)
            if key not in told and (crossing or conflict.first.side is conflict.second.side):
                told.add(key)
                yield _of(conflict)
        if crossing and run.exact:
            yield from map(_stuck, run.stuck)


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
