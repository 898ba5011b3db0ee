"""Who waits for whom: the cube and the vector program of a block as two processes with counting flags.

Both programs are unrolled a few iterations and run with vector clocks, so that "the i-th read sees the i-th write" and
"the next write waits for the read" are facts of happens-before and not of text order. Two vector cores always run in
step here: a flag to the cube counts once both have set it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tl2npu.kernel.flags.terms import Unknown, constants, is_known, value
from tl2npu.kernel.model import Branch, Inlined, Loop, ScopeBlock, Side, Stmt
from tl2npu.kernel.symbolic import Sym

EventKind = Literal["set", "wait", "write", "read", "barrier"]
UNROLL = 3


@dataclass(frozen=True)
class Event:
    """One step of a process; ``key`` names the flag or the hand-over."""

    kind: EventKind
    key: Hashable = None


@dataclass
class Verdict:
    """What the run shows of one hand-over.

    ``unordered``: a read is not ordered after its write. ``overtaken``: a read is ordered after a later write.
    ``overwritten``: the next write does not wait for the read. ``unmatched``: writes and reads differ in number.
    """

    unordered: bool = False
    overtaken: bool = False
    overwritten: bool = False
    unmatched: bool = False


@dataclass
class Outcome:
    """Verdicts by hand-over; ``deadlock`` if neither process can go on."""

    verdicts: dict[Hashable, Verdict] = field(default_factory=dict)
    deadlock: bool = False


Clock = tuple[int, int]


def _join(left: Clock, right: Clock) -> Clock:
    return max(left[0], right[0]), max(left[1], right[1])


def run(cube: Sequence[Event], vector: Sequence[Event]) -> Outcome:
    """Run the two event sequences; the schedule does not matter, happens-before does not depend on it."""
    programs = (cube, vector)
    position, clocks = [0, 0], [(0, 0), (0, 0)]
    flags: dict[tuple[Hashable, int], list[Clock]] = {}
    writes: dict[Hashable, list[tuple[int, Clock]]] = {}
    reads: dict[Hashable, list[tuple[int, Clock]]] = {}
    progressed = True
    while progressed:
        progressed = False
        for me in (0, 1):
            while position[me] < len(programs[me]):
                event = programs[me][position[me]]
                if event.kind == "wait":
                    pending = flags.get((event.key, me))
                    if not pending:
                        break
                    clocks[me] = _join(clocks[me], pending.pop(0))
                elif event.kind == "barrier":
                    other = 1 - me
                    peer = programs[other][position[other]] if position[other] < len(programs[other]) else None
                    if peer is None or peer.kind != "barrier":
                        break
                    joined = _join(clocks[0], clocks[1])
                    clocks = [joined, joined]
                    position[other] += 1
                tick = list(clocks[me])
                tick[me] += 1
                clocks[me] = (tick[0], tick[1])
                if event.kind == "set":
                    flags.setdefault((event.key, 1 - me), []).append(clocks[me])
                elif event.kind == "write":
                    writes.setdefault(event.key, []).append((me, clocks[me]))
                elif event.kind == "read":
                    reads.setdefault(event.key, []).append((me, clocks[me]))
                position[me] += 1
                progressed = True
    outcome = Outcome(deadlock=any(position[me] < len(programs[me]) for me in (0, 1)))
    for key in {**writes, **reads}:
        outcome.verdicts[key] = _judge(writes.get(key, []), reads.get(key, []))
    return outcome


def _before(first: tuple[int, Clock], second: tuple[int, Clock]) -> bool:
    """``first`` happens before ``second``: the second process has seen the first one's tick."""
    who, clock = first
    return second[1][who] >= clock[who]


def _judge(writes: list[tuple[int, Clock]], reads: list[tuple[int, Clock]]) -> Verdict:
    verdict = Verdict(unmatched=len(writes) != len(reads))
    for i, read in enumerate(reads):
        if i >= len(writes) or not _before(writes[i], read):
            verdict.unordered = True
        if i + 1 < len(writes):
            if _before(writes[i + 1], read):
                verdict.overtaken = True
            elif not _before(read, writes[i + 1]):
                verdict.overwritten = True
    return verdict


_FAR = 64


@dataclass(frozen=True)
class Turn:
    """The value of a loop variable. ``and_later``: the turn stands for the later ones too."""

    value: int
    and_later: bool


Extract = Callable[[Stmt, Side], Sequence[Event]]


def events(
    body: Sequence[Stmt], side: Side, extract: Extract, unroll: int = UNROLL, turn: Mapping[str, Turn] | None = None
) -> list[Event]:
    """The events of one core: loops unrolled, scopes of the other core left out; of a branch the arm that its loop's
    turn decides, else both. ``turn``: the values of loop variables."""
    turn = turn or {}
    result: list[Event] = []
    for stmt in body:
        if isinstance(stmt, ScopeBlock):
            if stmt.side is side:
                result += events(stmt.body, side, extract, unroll, turn)
        elif isinstance(stmt, Loop):
            result += extract(stmt, side)
            count = stmt.ranges[0].extent.constant if len(stmt.ranges) == 1 else None
            times = unroll if count is None else max(0, min(count, unroll))
            for number in range(times):
                result += events(stmt.body, side, extract, unroll, {**turn, **_turn(stmt, number, count == times)})
        elif isinstance(stmt, Branch):
            result += extract(stmt, side)
            taken = _taken(stmt.cond.sym, turn)
            result += events(stmt.then, side, extract, unroll, turn) if taken is not False else []
            result += events(stmt.orelse, side, extract, unroll, turn) if taken is not True else []
        elif isinstance(stmt, Inlined):
            result += events(stmt.body, side, extract, unroll, turn)
        else:
            result += extract(stmt, side)
    return result


def _turn(loop: Loop, number: int, all_of_them: bool) -> dict[str, Turn]:
    """The values of the loop's variable for which this turn stands: those behind the first one for all that follow."""
    if len(loop.ranges) != 1 or loop.ranges[0].start.constant is None or loop.ranges[0].step is not None:
        return {}
    first = loop.ranges[0].start.constant
    return {str(loop.ranges[0].var): Turn(first + number, not all_of_them and number > 0)}


def _taken(condition: Sym, turn: Mapping[str, Turn]) -> bool | None:
    """Whether a condition holds in this turn, and in all for which it stands; None where that is not known."""
    if not all(map(is_known, condition.atoms())):
        return None
    names = [name for name in condition.variables() if name in turn and turn[name].and_later]
    largest = max((abs(number) for number in constants(condition)), default=0)
    if largest > _FAR or len(names) > 1:
        return None
    numbers = {name: at.value for name, at in turn.items()}
    later = range(numbers[names[0]], largest + 3) if names else range(1)
    try:
        found = {value(condition, {**numbers, **dict.fromkeys(names, number)}) != 0 for number in later}
    except (Unknown, ZeroDivisionError):
        return None
    return found.pop() if len(found) == 1 else None
