"""TL848, TL867: the flags that the compiler inserts, run.

Only producer-to-consumer flags are inserted; nothing makes a producer wait until its last value was taken. The two
cores are run as two processes with those flags, and every hand-over has one slot (a kept workspace has those that its
indices name). Evidence: facts 2 (g9_*) and E14; ``src/transform/ascend_combinecv.cc``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tl2npu.checks.cross_core.channels import Channel, channels
from tl2npu.checks.cross_core.meeting import Meeting, meet, unit
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flags.order import Event, Outcome, run
from tl2npu.kernel.model import Branch, Loop, Operand, ScopeBlock, Side, Stmt, children, walk
from tl2npu.kernel.symbolic import Sym, const

_UNROLL = 3
_SIDES = (Side.CUBE, Side.VECTOR)
_OVERWRITTEN = "the next tile may overwrite this one before it is read"


@dataclass(frozen=True, eq=False)
class End:
    """One end of a hand-over: the statement that the flag stands at, and the events before and after it."""

    channel: Channel
    side: Side
    at: Stmt
    is_writer: bool


def check(subject: Subject) -> Iterator[Finding]:
    """Findings of a kernel with hand-overs between its cores."""
    if any(isinstance(placed.stmt, ScopeBlock) for placed in subject.statements):
        return
    found = channels(subject)
    meetings = [(channel, meet(subject, channel)) for channel in found]
    bad = False
    for channel, meeting in meetings:
        if meeting.dynamic is not None:
            text = f"`{channel.name}`: the cores run different loops here, without a constant trip count"
            yield Finding("TL867", meeting.dynamic.node, text)
            bad = True
    if found and not bad:
        yield from _judge(subject, meetings)


def _judge(subject: Subject, meetings: Sequence[tuple[Channel, Meeting]]) -> Iterator[Finding]:
    ends = [end for channel, meeting in meetings for end in _ends(channel, meeting)]
    outcome = run(*(Program(ends, side, {}).events(subject.kernel.body) for side in _SIDES))
    if outcome.deadlock:
        first = min((channel for channel, _ in meetings), key=lambda channel: channel.reader.order)
        text = "deadlock: the cube core waits for the vector cores while they wait for it"
        yield Finding("TL848", first.reader.stmt.node, text)
        return
    told = set()
    for channel, _ in meetings:
        kind = _verdict(outcome, channel)
        if kind:
            told.add(channel)
            yield Finding("TL848", channel.writer.stmt.node, f"race on `{channel.name}`: {kind}")
    for shown, holds, taken in _choices(subject, ends):
        outcome = run(*(Program(ends, side, taken).events(subject.kernel.body) for side in _SIDES))
        for channel, _ in meetings:
            if channel not in told and _verdict(outcome, channel) == _OVERWRITTEN:
                told.add(channel)
                where = f"where `{shown}` {'holds' if holds else 'does not hold'}"
                yield Finding("TL848", channel.writer.stmt.node, f"race on `{channel.name}`: {_OVERWRITTEN}, {where}")


def _choices(subject: Subject, ends: Sequence[End]) -> Iterator[tuple[str, bool, dict[int, bool]]]:
    """Conditions around some ends, each with the arm that is taken: a transfer in the other one orders nothing then.

    Those on loop variables, and on no data, differ from turn to turn; those that Python decides make another kernel,
    with other readers. Both are left out.
    """
    at = {id(end.at) for end in ends}
    found: dict[str, list[Branch]] = {}
    for placed in subject.statements:
        if isinstance(placed.stmt, Branch) and not subject.late.python_decides(placed.stmt):
            cond = placed.stmt.cond
            turning = {str(item.var) for loop in placed.loops for item in loop.ranges}
            if cond.loads or not any(cond.sym.depends_on(name) for name in turning):
                found.setdefault(code(cond.node), []).append(placed.stmt)
    for shown, branches in found.items():
        for holds in (False, True):
            left_out = [stmt for branch in branches for stmt in walk(branch.orelse if holds else branch.then)]
            if any(id(stmt) in at for stmt in left_out):
                yield shown, holds, {id(branch): holds for branch in branches}


def _verdict(outcome: Outcome, channel: Channel) -> str:
    mine = [
        verdict for key, verdict in outcome.verdicts.items() if isinstance(key, tuple) and key[0] == memory(channel)
    ]
    if any(verdict.overwritten for verdict in mine):
        return _OVERWRITTEN
    if any(verdict.unordered or verdict.overtaken for verdict in mine):
        return "this read does not get the tile that was written last"
    return ""


def _ends(channel: Channel, meeting: Meeting) -> Iterator[End]:
    producer, consumer = (Side.CUBE, Side.VECTOR) if channel.to_vector else (Side.VECTOR, Side.CUBE)
    for placed, kept, side, writes in (
        (channel.writer, meeting.writer, producer, True),
        (channel.reader, meeting.reader, consumer, False),
    ):
        yield End(channel, side, unit(placed, kept), writes)


class Program:
    """The events of one core: loops run a few times, branches are taken once, both arms.

    ``taken``: by id, branches of which one arm only is taken, the first one or the second.
    """

    def __init__(self, ends: Sequence[End], side: Side, taken: Mapping[int, bool]) -> None:
        self.taken = taken
        self.ends = {id(end.at): [e for e in ends if e.at is end.at and e.side is side] for end in ends}

    def events(self, body: Sequence[Stmt], step: dict[str, int] | None = None) -> list[Event]:
        """Events of a list of statements; ``step`` gives the loop variables their numbers."""
        result: list[Event] = []
        for stmt in body:
            ends = self.ends.get(id(stmt), [])
            readers = [end.channel for end in ends if not end.is_writer]
            writers = [end.channel for end in ends if end.is_writer]
            result += [Event("wait", channel) for channel in readers]
            reads = [Event("read", (memory(channel), slot(channel.reads_from, step or {}))) for channel in readers]
            if not children(stmt):
                result += reads  # the tile is taken before the statement itself runs
            result += [Event("write", (memory(channel), slot(channel.writes_to, step or {}))) for channel in writers]
            result += self._inside(stmt, step or {})
            if children(stmt):
                result += reads
            result += [Event("set", channel) for channel in writers]
        return result

    def _inside(self, stmt: Stmt, step: dict[str, int]) -> list[Event]:
        result: list[Event] = []
        if isinstance(stmt, Loop) and stmt.ranges and stmt.kind != "parallel":
            item = stmt.ranges[0]
            count = item.extent.constant if len(stmt.ranges) == 1 else None
            times = _UNROLL if count is None else max(0, min(count, _UNROLL))
            start = item.start.constant or 0
            for number in range(times):
                result += self.events(stmt.body, {**step, str(item.var): start + number})
            return result
        if isinstance(stmt, Branch) and id(stmt) in self.taken:
            return self.events(stmt.then if self.taken[id(stmt)] else stmt.orelse, step)
        for inner in children(stmt):
            result += self.events(inner, step)
        return result


def memory(channel: Channel) -> Hashable:
    """What a tile passes through: a slot of its own on chip, or the kept tensor, which several hand-overs may share."""
    return channel.name if channel.writes_to is not None else channel


def slot(operand: Operand | None, step: dict[str, int]) -> Hashable:
    """The place in a kept workspace that an operand names in a step.

    Instances (the block, the vector core, the row of a tile) count as 0: they are the same on both sides. Sizes keep
    their names, so that ``k * block`` differs from step to step.
    """
    if operand is None:
        return ()
    if operand.dims is None:
        return ("0",) * len(operand.buffer.shape)
    found = []
    for dim in operand.dims:
        low: Sym = dim.lo.substitute({name: const(number) for name, number in step.items()})
        instances = [name for name in low.variables() if "@" in name]
        found.append(str(low.substitute(dict.fromkeys(instances, 0))))
    return tuple(found)
