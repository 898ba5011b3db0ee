"""Which sizes of tiles the model takes to be faster than those of a call, and fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.memory_plan.fitting import tile_parameters
from tl2npu.checks.subject import Subject
from tl2npu.cost.estimate import estimate
from tl2npu.costs import Estimate
from tl2npu.kernel.factories.callers import Caller

_SIZES = (16, 512)
_AT_ONCE = 3
"""Parameters that are varied together: three have 26 neighbours."""


def faster(
    subject: Subject, caller: Caller, start: Estimate, sizes: Mapping[str, int], cores: int | None = None
) -> list[Estimate]:
    """Sizes that fit and take less time than those of the caller, fastest first; none where the time is not known.

    Every size is doubled and halved from the best ones so far until nothing is faster. What a size has to divide for
    the caller it still divides. ``start``: the estimate for the caller; ``sizes``: what the user gives.
    """
    names = [name for name in tile_parameters(subject, caller) if name not in sizes][:_AT_ONCE]
    needs = Needs.of_subject(subject)
    if start.microseconds is None or start.unknown:
        return []
    tried: dict[tuple[int, ...], Estimate] = {}
    here, best = tuple(caller.values[name] for name in names), start
    while True:
        for there in _neighbours(here):
            if there not in tried and _divides(caller, names, there):
                chosen = {**sizes, **dict(zip(names, there, strict=True))}
                tried[there] = estimate(subject, needs, caller, chosen, cores)
        found = min((key for key in tried if _beats(tried[key], best)), key=lambda key: _time(tried[key]), default=None)
        if found is None:
            break
        here, best = found, tried[found]
    return sorted((one for one in tried.values() if _beats(one, start)), key=_time)


def _neighbours(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for shifts in itertools.product((-1, 0, 1), repeat=len(sizes)):
        found = tuple(size * 2 if up > 0 else size // 2 if up else size for size, up in zip(sizes, shifts, strict=True))
        if any(shifts) and all(_SIZES[0] <= size <= _SIZES[1] for size in found):
            yield found


def _divides(caller: Caller, names: list[str], sizes: tuple[int, ...]) -> bool:
    """Whether the sizes divide what those of the caller divide, of all other sizes that are as large."""
    others = [value for name, value in caller.values.items() if name not in names and not isinstance(value, bool)]
    return all(
        other % size == 0
        for name, size in zip(names, sizes, strict=True)
        for other in others
        if other >= caller.values[name] and other % caller.values[name] == 0
    )


def _beats(one: Estimate, other: Estimate) -> bool:
    return one.fits and (not other.fits or _time(one) < _time(other))


def _time(one: Estimate) -> float:
    return one.microseconds or math.inf  # 0: no block is left to do anything
