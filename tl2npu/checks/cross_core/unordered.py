"""TL780 to TL782: accesses that nothing orders, in a kernel that synchronises its pipes or its cores by hand.

What ``tl2npu run`` finds with the data of one launch, from the text (:mod:`tl2npu.kernel.flags.clocks`). AUTO_SYNC
orders the pipes of a core in every mode, with gaps (:mod:`tl2npu.kernel.flags.automatic`), AUTO_CV_SYNC the cores only
where COMBINE divides the work (``src/transform/ascend_combinecv.cc``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import cast

from tl2npu.checks.cross_core.channels import on_chip
from tl2npu.checks.cross_core.remedies import remedy
from tl2npu.checks.operators.vector_form import parallel_stores
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.factories.configs import COMBINE, CV_SYNC, SYNC
from tl2npu.kernel.flags.automatic import Automatic, cores_of_barriers
from tl2npu.kernel.flags.clocks import Run
from tl2npu.kernel.flags.parts import GiveUp
from tl2npu.kernel.flags.seen import Conflict, Seen, Stuck
from tl2npu.kernel.flags.waits import may_come_early
from tl2npu.kernel.model import Branch, Copy, Loop, Op, ScopeBlock, Side, Stmt, Sync

_CALLERS = 2
_CORES = {Side.CUBE: "cube core", Side.VECTOR: "vector cores"}


def check(subject: Subject) -> Iterator[Finding]:
    """Findings for the first calls of the factory that differ."""
    pipes, combined = subject.is_on(SYNC), subject.is_on(COMBINE)
    if pipes is None or combined is None:
        return
    if pipes:
        yield from _not_automatic(subject)
    crossing = subject.is_mixed and not (combined and subject.is_on(CV_SYNC))
    if (pipes and not crossing) or not any(
        isinstance(placed.stmt, (ScopeBlock, Sync)) for placed in subject.statements
    ):
        return
    if on_chip(subject) or (combined and subject.is_mixed and any(map(_is_pipeline, subject.kernel.walk()))):
        return
    told: set[tuple[int, str]] = set()
    found: list[Conflict] = []
    order = {id(placed.stmt): placed.order for placed in subject.statements}
    for run in by_hand(subject):
        for conflict in run.conflicts:
            key = (id(conflict.second.stmt), conflict.second.touch.buffer.name)
            one_core = conflict.first.side is conflict.second.side
            if key not in told and (one_core or (crossing and run.crosses)) and not _has_versions(subject, conflict):
                told.add(key)
                found.append(conflict)
        for stuck in run.stuck if crossing and run.exact else ():
            if (id(stuck.stmt), "") not in told:
                told.add((id(stuck.stmt), ""))
                yield _stuck(stuck)
    for group in _by_cause(found, order):
        yield _of(subject, group)


def by_hand(subject: Subject, accesses: bool = True) -> tuple[Run, ...]:
    """The kernel run as its author ordered it, for the first calls of the factory that differ; with its accesses, or
    its flags alone where nobody has asked for these before."""
    if by_hand not in subject.kept:
        if not accesses:
            return tuple(_by_hand(subject, False))
        subject.kept[by_hand] = tuple(_by_hand(subject, True))
    return cast(tuple[Run, ...], subject.kept[by_hand])


def _by_hand(subject: Subject, accesses: bool) -> Iterator[Run]:
    scopes = any(isinstance(placed.stmt, ScopeBlock) for placed in subject.statements)
    if subject.is_mixed and not scopes and not subject.is_on(COMBINE):
        return
    cores = tuple(side for side in _CORES if side in subject.sides)
    for values, vid in product(subject.every_value[:_CALLERS], _vector_cores(subject)):
        pipes = not subject.is_on(SYNC)
        evaluator = subject.located.evaluator
        run = Run(subject.kernel, evaluator, values, pipes, scopes, cores, vid, accesses=accesses)
        try:
            run.go()
        except (GiveUp, ZeroDivisionError):
            return
        yield run


def _not_automatic(subject: Subject) -> Iterator[Finding]:
    """What AUTO_SYNC leaves out, where the author has not put a barrier."""
    for conflict in missed(subject):
        first, second = conflict.first, conflict.second
        name, line = second.touch.buffer.name, subject.file.index.position(first.stmt.node).line
        text = f"`{name}` is read before {_shown(first)} on line {line} has written it: AUTO_SYNC sees the last read"
        yield Finding("TL780", second.stmt.node, text, help="write `T.barrier_all()` before this")


def missed(subject: Subject, bare: bool = False) -> tuple[Conflict, ...]:
    """Reads that AUTO_SYNC does not order behind the write, the first of each statement; not in a loop of both cores
    that is taken apart into stages.

    ``bare``: as if the author had put no barriers.
    """
    if (missed, bare) not in subject.kept:
        subject.kept[missed, bare] = _missed(subject, bare)
    return cast(tuple[Conflict, ...], subject.kept[missed, bare])


def _missed(subject: Subject, bare: bool) -> tuple[Conflict, ...]:
    stores = parallel_stores(subject)
    cores = tuple(side for side in _CORES if side in subject.sides)
    scopes = any(isinstance(placed.stmt, ScopeBlock) for placed in subject.statements)
    authors = {} if bare else cores_of_barriers(subject.kernel)
    if len(cores) == 1:
        authors = dict.fromkeys(authors, cores[0])
    behind = (one for one in stores if one.form == "scalar" or (one.form == "rows" and one.value.kind != "load"))
    automatic = Automatic(frozenset(id(one.store) for one in behind), authors)
    fixed = frozenset(name for values in subject.every_value for name in values)
    if not may_come_early(subject.kernel, automatic, cores, fixed):
        return ()
    found: dict[int, Conflict] = {}
    for values in subject.every_value[:_CALLERS]:
        known = -1
        while automatic.count != known:
            known = automatic.count
            automatic.forget()
            try:
                run = Run(subject.kernel, subject.located.evaluator, values, True, scopes, cores, automatic=automatic)
                run.go()
            except (GiveUp, ZeroDivisionError):
                return ()
        for conflict in run.conflicts:
            apart = conflict.first.side is not conflict.second.side
            if conflict.is_read and not apart and not (subject.is_mixed and _in_one_pipeline(subject, conflict)):
                found.setdefault(id(conflict.second.stmt), conflict)
    return tuple(found.values())


def _by_cause(found: Iterable[Conflict], order: Mapping[int, int]) -> list[list[Conflict]]:
    """Accesses that one flag or barrier would order, whose place is behind all of the first and before the others."""
    groups: list[list[Conflict]] = []
    for conflict in found:
        for group in groups:
            together = [*group, conflict]
            firsts, seconds = ([order[id(getattr(one, side).stmt)] for one in together] for side in ("first", "second"))
            alike = {
                (c.is_read, c.first.side, c.second.side, c.first.touch.pipe, c.second.touch.pipe) for c in together
            }
            if len(alike) == 1 and (max(firsts) < min(seconds) or max(seconds) < min(firsts)):
                group.append(conflict)
                break
        else:
            groups.append([conflict])
    return groups


def _vector_cores(subject: Subject) -> Iterable[int]:
    """Both where a condition tells them apart."""
    vid = subject.kernel.vid
    branches = (stmt for stmt in subject.kernel.walk() if isinstance(stmt, Branch))
    return (0, 1) if vid and any(vid in stmt.cond.sym.variables() for stmt in branches) else (0,)


def _is_pipeline(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind == "pipelined"


def _has_versions(subject: Subject, conflict: Conflict) -> bool:
    """The compiler may give each turn a tile of its own."""
    return not conflict.is_read and _in_one_pipeline(subject, conflict)


def _in_one_pipeline(subject: Subject, conflict: Conflict) -> bool:
    """Both in one ``T.Pipelined``: the compiler changes their order."""
    loops = [
        {id(parent) for parent in placed.parents if _is_pipeline(parent)}
        for stmt in (conflict.first.stmt, conflict.second.stmt)
        for placed in subject.statements
        if placed.stmt is stmt
    ]
    return bool(set.intersection(*loops)) if loops else False


def _of(subject: Subject, group: Sequence[Conflict]) -> Finding:
    first, second = group[0].first, group[0].second
    lines = [subject.file.index.position(one.first.stmt.node).line for one in group]
    last = max((one.first.stmt for one in group), key=lambda stmt: subject.file.index.position(stmt.node).line)
    shown, help = f"{_shown(first)} on line {lines[0]}", remedy(subject, group, last)
    others = sorted({subject.file.index.position(one.second.stmt.node).line for one in group[1:]})
    name = second.touch.buffer.name
    if first.side is not second.side:
        how = f"no cross-core flag makes the {_CORES[second.side]} wait for the {_CORES[first.side]}"
    else:
        how = f"nothing makes pipe {second.touch.pipe} wait for pipe {first.touch.pipe}"
    if others:
        how += f"; {len(others)} more {'lines' if len(others) > 1 else 'line'}: {', '.join(map(str, others))}"
    if group[0].is_read:
        return Finding("TL780", second.stmt.node, f"`{name}` is read before {shown} has written it: {how}", help=help)
    done = "written" if first.touch.writes else "read"
    text = f"`{name}` is overwritten before {shown} has {done} it: {how}"
    return Finding("TL781", second.stmt.node, text, help=help)


def _shown(seen: Seen) -> str:
    stmt = seen.stmt
    if isinstance(stmt, Copy):
        return f"the copy from `{stmt.src.buffer.name}` to `{stmt.dst.buffer.name}`"
    return f"T.{stmt.op.name}" if isinstance(stmt, Op) else "the scalar unit" if seen.touch.pipe == "S" else "the loop"


def _stuck(stuck: Stuck) -> Finding:
    """A flag between the cores that is waited for and never set, or set and never waited for."""
    core, flag, ending = _CORES[stuck.side], stuck.flag, "s" if stuck.side is Side.CUBE else ""
    if stuck.is_set:
        text = f"the {core} set{ending} cross-core flag {flag} more often than the other core waits for it"
    else:
        text = f"deadlock: the {core} wait{ending} for cross-core flag {flag} more often than it is set"
    return Finding("TL782", stuck.stmt.node, text)
