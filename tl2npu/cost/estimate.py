"""The estimate of every kernel of a text: one block's cycles, the time of all, and what bounds it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.subject import Subject
from tl2npu.cost.rates import RATES, Pipe
from tl2npu.cost.work import Work
from tl2npu.costs import Estimate, Load
from tl2npu.devices import DEVICES
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.kernel.model import Sync
from tl2npu.options import Options
from tl2npu.source.index import Index


class NoRates(ValueError):
    """Nothing public says what the pipes of a device can do."""


def estimates(
    text: str, path: str, options: Options, sizes: Mapping[str, int], cores: int | None = None
) -> list[Estimate]:
    """Every kernel of a file that is written for an NPU, for each known way to call it that differs in its sizes.

    ``sizes`` and ``cores`` are those that the user gives; they win. Raises :class:`NoRates`, and
    :class:`~tl2npu.source.text.SourceError` for a text that is no Python.
    """
    if options.device not in RATES:
        raise NoRates(f"nothing public says how fast the pipes of {options.device} are")
    file = FileKernels(Index.parse(text))
    found: list[Estimate] = []
    for located in file.located:
        kernel = located.read()
        infer_memory(kernel)
        if kernel.launch is None or kernel.dialect == "gpu":
            continue
        subject = Subject(kernel, file, located, options)
        needs = Needs.of_subject(subject)
        found += [_estimate(subject, needs, caller, sizes, cores) for caller in needs.that_differ()]
    return list(dict.fromkeys(found))


def slowdown(old: Subject, new: Subject) -> float | None:
    """The time of a block of the new kernel over that of the old one, at the first call; None if not known."""
    if old.options.device not in RATES:
        return None
    pair = [_estimate(one, Needs.of_subject(one), one.callers[0], {}, None) for one in (old, new)]
    if any(one.unknown or not one.expected for one in pair):
        return None
    return pair[1].expected / pair[0].expected


def _estimate(subject: Subject, needs: Needs, caller: Caller, sizes: Mapping[str, int], cores: int | None) -> Estimate:
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
    launch = subject.kernel.launch
    assert launch is not None
    grid = [extent.evaluate(known) for extent in launch.grid]
    blocks = None if None in grid else math.prod(extent or 0 for extent in grid)
    mentioned = needs.variables
    return Estimate(
        kernel=subject.located.key[0],
        line=subject.file.index.position(subject.located.node).line,
        sizes=tuple(sorted((name, value) for name, value in known.items() if name in mentioned)),
        device=subject.options.device,
        frequency=rate.frequency,
        loads=loads,
        serial=max(map(sum, by_core)),
        overlapped=max((load.cycles for load in loads), default=0.0),
        waits=not subject.is_expert or _stops_all(subject),
        blocks=blocks,
        cores=cores or DEVICES[subject.options.device].cube_cores,
        both_vector_cores=subject.is_split or subject.kernel.vid is not None,
        filled=tuple(needs.filled(known, caller.words)),
        unknown=tuple(work.unknown),
    )


def _stops_all(subject: Subject) -> bool:
    """Whether a barrier for all pipes stands in a loop: ``T.barrier_all()`` or ``T.pipe_barrier("all")``."""
    found = [placed.stmt for placed in subject.statements if placed.loops]
    return any(
        stmt.op.name == "barrier_all" or (stmt.op.name == "pipe_barrier" and stmt.text("pipe")[1:-1].upper() == "ALL")
        for stmt in found
        if isinstance(stmt, Sync)
    )
