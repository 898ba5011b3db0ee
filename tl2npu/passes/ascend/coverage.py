"""TL309: may the manual synchronisation of a kernel go?

Inside a core AUTO_SYNC replaces barriers and flags. Between the cores the flags of the kernel are run
(:mod:`tl2npu.kernel.flags.order`): every read of a hand-over must see the write of the same iteration, for that is what
AUTO_CV_SYNC will pair. Anything else that flags protect (the previous iteration's value, another block's data, an
exchange between the two vector cores) has no automatic counterpart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import libcst as cst

from tl2npu.kernel.access import side_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.flags.order import Event, events, run
from tl2npu.kernel.handover import Place, Traffic, iterate_places, traffic
from tl2npu.kernel.model import Copy, Kernel, ScopeBlock, Side, Stmt, Sync, walk, walk_with_parents
from tl2npu.passes.ascend.hand_overs import side
from tl2npu.passes.ascend.scopes import FLAG_NAMES
from tl2npu.passes.job import Job

_CUBE_PIPES = ("FIX", "M", "MTE1")
_VECTOR_PIPES = ("V", "MTE3")


def check(job: Job, cv_sync: bool) -> None:
    """Raise :class:`Blocked` if removing the synchronisation could change what the kernel computes."""
    kernel = job.kernel
    syncs = [stmt for stmt in kernel.walk() if isinstance(stmt, Sync)]
    entries = [entry for entry in traffic(kernel).values() if entry.exchanged]
    _check_grid_barriers(kernel, syncs, entries)
    crossing = [entry for entry in entries if _crosses(entry)]
    flags = [stmt for stmt in syncs if stmt.op.name in ("set_cross_flag", "wait_cross_flag")]
    if not crossing:
        return
    if not flags:
        scoped = any(isinstance(stmt, ScopeBlock) for stmt in kernel.walk())
        if scoped and not any(s.op.name == "sync_all" for s in syncs):
            place = next(iterate_places(crossing[0]))
            raise Blocked(
                "TL309", place.copy.node, f"no flag orders the cube and vector cores around `{crossing[0].tensor.name}`"
            )
        return
    if cv_sync and not any(isinstance(stmt, ScopeBlock) for stmt in kernel.walk()):
        raise Blocked("TL309", flags[0].node, "the kernel sets cross-core flags by hand although AUTO_CV_SYNC is on")
    _run(kernel, crossing, flags)


def _crosses(entry: Traffic) -> bool:
    return len({side(place, entry.tensor) for place in iterate_places(entry)}) > 1


def _check_grid_barriers(kernel: Kernel, syncs: Sequence[Sync], entries: Sequence[Traffic]) -> None:
    barriers = [stmt for stmt in syncs if stmt.op.name == "sync_all"]
    modes = [s for s in syncs if s.op.name == "set_cross_flag" and s.text("mode") not in ("", "2")]
    for stmt in [*barriers, *modes]:
        if entries and stmt in modes and not _crosses(entries[0]):
            raise Blocked(
                "TL849",
                stmt.node,
                f"`{entries[0].tensor.name}` passes data between cores of one kind; Developer mode does not order them",
            )
        if entries:
            raise Blocked(
                "TL309",
                stmt.node,
                f"a barrier between blocks protects `{entries[0].tensor.name}`; Developer mode does not order blocks",
            )


def _key(place: Place, entry: Traffic) -> Hashable:
    fixed = tuple(lo.constant for lo, _ in place.region if lo.constant is not None and lo.constant != 0)
    return entry.tensor.name, fixed


def _run(kernel: Kernel, crossing: Sequence[Traffic], flags: Sequence[Sync]) -> None:
    found: dict[Stmt, list[tuple[Side, Event]]] = {}
    for entry in crossing:
        sides = {side(p, entry.tensor) for p in entry.readers}
        for place in entry.writers:
            if {side(place, entry.tensor)} == sides:
                continue  # the result that replaces a tile handed over through an output
            found.setdefault(place.copy, []).append((side(place, entry.tensor), Event("write", _key(place, entry))))
        for place in entry.readers:
            found.setdefault(place.copy, []).append((side(place, entry.tensor), Event("read", _key(place, entry))))
    sides_of_flags = _flag_sides(kernel, flags)

    def extract(stmt: Stmt, core: Side) -> list[Event]:
        if isinstance(stmt, Copy):
            return [event for where, event in found.get(stmt, []) if where is core]
        if isinstance(stmt, Sync) and sides_of_flags.get(stmt) is core:
            flag = next((v.sym for k, v in stmt.args.items() if k in FLAG_NAMES), None)
            return [Event("set" if stmt.op.name == "set_cross_flag" else "wait", str(flag))]
        return []

    programs = [_once_per_row(events(kernel.body, core, extract, unroll=3)) for core in (Side.CUBE, Side.VECTOR)]
    outcome = run(*programs)
    if outcome.deadlock:
        raise Blocked("TL309", flags[0].node, "deadlock: the cross-core flags never let both cores finish")
    by_key = {_key(p, e): p.copy.node for e in crossing for p in e.readers}
    for key, verdict in outcome.verdicts.items():
        node: cst.CSTNode = by_key.get(key, flags[0].node)
        name = key[0] if isinstance(key, tuple) else key
        if verdict.unordered:
            raise Blocked("TL309", node, f"no cross-core flag makes this read of `{name}` wait for its write")
        if verdict.overtaken:
            raise Blocked("TL309", node, f"the flags let a later write of `{name}` overtake this read")
        if verdict.unmatched:
            raise Blocked("TL309", node, f"`{name}` is written and read a different number of times")


def _once_per_row(program: list[Event]) -> list[Event]:
    """Rows of one tile, written or read one after the other with no flag between, count as one access."""
    result: list[Event] = []
    recent: set[Event] = set()
    for event in program:
        if event.kind in ("set", "wait", "barrier"):
            recent.clear()
        elif event in recent:
            continue
        else:
            recent.add(event)
        result.append(event)
    return result


def _flag_sides(kernel: Kernel, flags: Sequence[Sync]) -> dict[Sync, Side]:
    """The core of each flag: its Scope, else its pipe, else the core of the statement before it."""
    result: dict[Sync, Side] = {}
    scope: dict[int, Side] = {}
    for stmt, parents in walk_with_parents(kernel.body):
        inside = next((p.side for p in reversed(parents) if isinstance(p, ScopeBlock)), None)
        if inside is not None:
            scope[id(stmt)] = inside
    previous = Side.CUBE
    for stmt in walk(kernel.body):
        if isinstance(stmt, Sync) and stmt in flags:
            pipe = stmt.text("pipe").strip("\"'").upper()
            guess = Side.CUBE if pipe in _CUBE_PIPES else Side.VECTOR if pipe in _VECTOR_PIPES else previous
            result[stmt] = scope.get(id(stmt), guess)
        else:
            own = scope.get(id(stmt), side_of(stmt))
            if own in (Side.CUBE, Side.VECTOR):
                previous = own
    return result
