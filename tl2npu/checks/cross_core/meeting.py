"""Where the compiler puts the flags of a hand-over: the deepest loops of both cores that run equally often.

Mirrors ``FindTargetLoopDepth`` of ``src/transform/ascend_combinecv.cc``: a shared loop with an extent that is no
constant counts as one step; any other loop with such an extent makes the compiler fail.
"""

from __future__ import annotations

from dataclasses import dataclass

from tl2npu.checks.cross_core.channels import Channel
from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.model import Loop, Stmt
from tl2npu.kernel.symbolic import Sym, product


@dataclass(frozen=True, eq=False)
class Meeting:
    """The loops of writer and reader that stay around set and wait.

    ``dynamic`` is a loop that is not shared and has no constant extent.
    """

    writer: tuple[Loop, ...]
    reader: tuple[Loop, ...]
    dynamic: Loop | None = None


def meet(subject: Subject, channel: Channel) -> Meeting:
    """The loop levels of a hand-over's flags."""
    mine = [loop for loop in channel.writer.loops if loop.kind != "parallel"]
    theirs = [loop for loop in channel.reader.loops if loop.kind != "parallel"]
    shared = 0
    while shared < min(len(mine), len(theirs)) and _is_shared(subject, mine[shared], theirs[shared]):
        shared += 1
    rest = (*mine[shared:], *theirs[shared:])
    dynamic = next((loop for loop in rest if _is_dynamic(subject, loop)), None)
    best = (shared, shared)
    for left in range(shared, len(mine) + 1):
        for right in range(shared, len(theirs) + 1):
            if subject.same(_turns(mine[shared:left]), _turns(theirs[shared:right])) and sum(best) < left + right:
                best = (left, right)
    return Meeting(tuple(mine[: best[0]]), tuple(theirs[: best[1]]), dynamic)


def unit(placed: Placed, kept: tuple[Loop, ...]) -> Stmt:
    """What stands between wait and set: the outermost loop inside of the loops that stay around, or the statement."""
    chain = (*placed.parents, placed.stmt)
    inside = chain[chain.index(kept[-1]) + 1 :] if kept else chain
    return next((stmt for stmt in inside if isinstance(stmt, Loop)), placed.stmt)


def runs_equally(channel: Channel, meeting: Meeting) -> bool:
    """True if the flags of both ends stand under the same conditions."""
    ends = ((channel.writer, meeting.writer), (channel.reader, meeting.reader))
    conditions = []
    for placed, kept in ends:
        chain = (*placed.parents, placed.stmt)
        around = chain[: chain.index(unit(placed, kept))]
        conditions.append([pair for pair in placed.conditions if pair[0] in around])
    return conditions[0] == conditions[1]


def _is_shared(subject: Subject, mine: Loop, theirs: Loop) -> bool:
    if mine is theirs:
        return True
    names = [loop.ranges[0].name if loop.ranges else "" for loop in (mine, theirs)]
    return names[0] == names[1] and _is_dynamic(subject, mine) and _is_dynamic(subject, theirs)


def _is_dynamic(subject: Subject, loop: Loop) -> bool:
    return not loop.ranges or any(subject.is_runtime(item.extent) for item in loop.ranges)


def _turns(loops: list[Loop]) -> Sym:
    return product(item.extent for loop in loops for item in loop.ranges)
