"""The estimate of a kernel for one call: one block's cycles, the time of all, and what bounds it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.subject import Subject
from tl2npu.cost.rates import RATES, Pipe
from tl2npu.cost.waiting import waiting
from tl2npu.cost.work import Work
from tl2npu.costs import Estimate, Load
from tl2npu.devices import DEVICES
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.model import Sync


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
        serial=max(map(sum, by_core)),
        overlapped=max((load.cycles for load in loads), default=0.0),
        waits=not subject.is_expert or _stops_all(subject),
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
