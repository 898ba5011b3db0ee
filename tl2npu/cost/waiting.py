"""How long two cores that hand tiles to each other wait: the statements of a loop, run in order on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tl2npu.checks.cross_core.channels import Channel, channels
from tl2npu.checks.operators.samples import number
from tl2npu.checks.subject import Subject
from tl2npu.cost.work import Work
from tl2npu.kernel.model import Loop, Side, walk
from tl2npu.kernel.stages import parts

_ROUNDS = 4
"""So many rounds are run; the others last as long as the last of them."""


@dataclass(frozen=True)
class Step:
    """A statement of a turn: ``cycles`` on the cube core or on the vector cores, in the ``part`` with that number."""

    cycles: float
    of_cube: bool
    part: int


@dataclass(frozen=True)
class Schedule:
    """The steps of a turn, and pairs of a step and the one that hands it a tile: of the same turn if that stands before
    it, else of the turn before."""

    steps: tuple[Step, ...]
    needs: frozenset[tuple[int, int]]

    def cycles(self, turns: int, stages: int) -> float:
        """From the start of the first turn to the end of the last, with ``stages`` turns of a part at a time."""
        rounds = max(1, turns // stages)
        ends: dict[tuple[int, int], float] = {}
        free = {True: 0.0, False: 0.0}
        marks: list[float] = []
        by_part: dict[int, list[int]] = {}
        for index, step in enumerate(self.steps):
            by_part.setdefault(step.part, []).append(index)
        for first in range(0, min(rounds, _ROUNDS) * stages, stages):
            for inside in by_part.values():
                for turn, index in ((turn, index) for turn in range(first, first + stages) for index in inside):
                    step = self.steps[index]
                    ready = [ends.get((w, turn if w < index else turn - 1), 0.0) for r, w in self.needs if r == index]
                    start = max([free[step.of_cube], *ready])
                    ends[index, turn] = free[step.of_cube] = start + step.cycles
            marks.append(max(free.values()))
        last = marks[-1] - marks[-2] if len(marks) > 1 else marks[-1]
        return marks[-1] + last * (rounds - len(marks))

    @property
    def busiest(self) -> float:
        """The cycles of a turn on the core with more of them."""
        return max(sum(step.cycles for step in self.steps if step.of_cube is cube) for cube in (True, False))


def waiting(subject: Subject, work: Work, known: Mapping[str, int]) -> float:
    """Cycles of a block in which the busier core of a loop waits for the other one."""
    handed = channels(subject)
    if not handed:
        return 0.0
    total = 0.0
    for loop in [stmt for stmt in subject.kernel.walk() if isinstance(stmt, Loop) and stmt.kind != "parallel"]:
        turns, runs = work.turns.get(id(loop), 0.0), work.runs.get(id(loop), 0.0)
        found = _schedule(handed, work, loop, turns * runs) if turns >= 1 and runs else None
        if found is not None:
            of_author = loop.num_stages if loop.kind == "pipelined" else None
            stages = number(of_author, known) if of_author is not None else 1
            total += runs * max(0.0, found.cycles(int(turns), max(1, stages or 1)) - turns * found.busiest)
    return total


def _schedule(handed: Sequence[Channel], work: Work, loop: Loop, times: float) -> Schedule | None:
    """A turn of a loop that runs ``times`` times in all; None if no tile is handed over by its own statements."""
    found = parts(loop.body)
    order = [(stmt, number) for number, part in enumerate(found) for stmt in part.body]
    place = {id(inner): index for index, (stmt, _) in enumerate(order) for inner in walk([stmt])}
    pairs = {id(c.writer.stmt): (place.get(id(c.reader.stmt)), place.get(id(c.writer.stmt))) for c in handed}
    needs = frozenset((r, w) for r, w in pairs.values() if r is not None and w is not None)
    if not needs or any(part.side is Side.BOTH for part in found):
        return None
    cycles = [0.0] * len(order)
    for part in work.parts:
        index = place.get(id(part.stmt))
        if index is not None and part.pipe.of_cube is not (found[order[index][1]].side is Side.CUBE):
            index = pairs.get(id(part.stmt), (None, None))[0]  # the other end of a transfer
        if index is not None:
            cycles[index] += part.cycles / times
    steps = (Step(n, found[number].side is Side.CUBE, number) for n, (_, number) in zip(cycles, order, strict=True))
    return Schedule(tuple(steps), needs)
