"""The estimate of a kernel for one call: one block's cycles, the time of all, and what bounds it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tl2npu.checks.cross_core.channels import Channel, channels
from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.subject import Subject
from tl2npu.cost.rates import RATES, Pipe
from tl2npu.cost.work import Work
from tl2npu.costs import Estimate, Load
from tl2npu.devices import DEVICES
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.model import Loop, Op, Side, Sync, walk
from tl2npu.kernel.ranges.numbers import number_of
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
            stages = number_of(of_author, known) if of_author is not None else 1
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


class NoRates(ValueError):
    """Nothing public says what the pipes of a device can do."""


def slowdown(old: Subject, new: Subject) -> float | None:
    """The time of a block of the new kernel over that of the old one, at the first call; None if not known."""
    if old.options.device not in RATES:
        return None
    pair = [estimate(one, Needs.of_subject(one), one.callers[0], {}, None) for one in (old, new)]
    return None if any(one.unknown for one in pair) else pair[1].over(pair[0])


def estimate(subject: Subject, needs: Needs, caller: Caller, sizes: Mapping[str, int], cores: int | None) -> Estimate:
    """A kernel for one call, with other ``sizes`` for some parameters or names.

    Raises :class:`NoRates`.
    """
    return measured(subject, needs, caller, sizes, cores)[0]


def measured(
    subject: Subject, needs: Needs, caller: Caller, sizes: Mapping[str, int], cores: int | None
) -> tuple[Estimate, Work]:
    """The same with what its statements do."""
    if subject.options.device not in RATES:
        raise NoRates(f"nothing public says how fast the pipes of {subject.options.device} are")
    factory = subject.located.factory
    values = caller.changed(factory.node, sizes) if factory is not None and sizes else caller.values
    known = {**values, **sizes}
    rate = RATES[subject.options.device]
    work = Work(subject, rate, known, caller.words)
    loads = tuple(
        Load(pipe.value, pipe.of_cube, work.cycles[pipe], work.bytes[pipe], work.count[pipe])
        for pipe in Pipe
        if work.cycles[pipe]
    )
    by_core = [[load.cycles for load in loads if load.of_cube is cube] for cube in (True, False)]
    stops = not subject.is_expert or _stops_all(subject)
    cube, vector = by_core
    products = any(isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM for stmt in subject.kernel.walk())
    launch = subject.kernel.launched
    grid = [extent.evaluate(known) for extent in launch.grid]
    blocks = None if None in grid else math.prod(extent or 0 for extent in grid)
    mentioned = needs.variables
    made = Estimate(
        kernel=subject.located.key[0],
        sizes=tuple(sorted((name, value) for name, value in known.items() if name in mentioned)),
        device=subject.options.device,
        frequency=rate.frequency,
        loads=loads,
        serial=max(sum(cube), sum(vector) if stops or not products else max(vector, default=0.0)),
        overlapped=max((load.cycles for load in loads), default=0.0),
        waits=stops or products,
        waiting=None if subject.is_expert else waiting(subject, work, known),
        blocks=blocks,
        cores=cores or DEVICES[subject.options.device].cube_cores,
        both_vector_cores=subject.is_split or subject.kernel.vid is not None,
        filled=tuple(needs.filled(known, caller.words)),
        unknown=tuple(work.unknown),
    )
    return made, work


def _stops_all(subject: Subject) -> bool:
    """Whether a barrier for all pipes stands in a loop: ``T.barrier_all()`` or ``T.pipe_barrier("all")``."""
    found = [placed.stmt for placed in subject.statements if placed.loops]
    return any(
        stmt.op.name == "barrier_all" or (stmt.op.name == "pipe_barrier" and stmt.text("pipe")[1:-1].upper() == "ALL")
        for stmt in found
        if isinstance(stmt, Sync)
    )
