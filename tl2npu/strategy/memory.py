"""Which way a kernel goes where memory and stages matter: with plenty of memory or little, in stages or in turns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Protocol

from tl2npu.checks.cross_core import hand_overs, kept, pipelines, races
from tl2npu.checks.memory_plan import fitting, sharing
from tl2npu.checks.memory_plan.fitting import is_overfull, shortage
from tl2npu.passes.job import Job
from tl2npu.strategy import products
from tl2npu.strategy.attempt import Attempt, Case, subject_of

_OF_STAGES = (sharing.check, fitting.check, hand_overs.check, races.check, kept.check, pipelines.check)
"""What objects to a loop over both cores that has stages, and may not to one in which they take turns."""


class Tries(Protocol):
    """The forms of a kernel, on the way that ``write`` goes; none where what it gives cannot be better."""

    def __call__(
        self, case: Case, write: Callable[[], Job] | None = None, may_be_better: Callable[[Job], bool] = ...
    ) -> list[Attempt]: ...


def best(case: Case, tries: Tries) -> list[Attempt]:
    """The best forms, with tiles that save time (products of zeros: TL623, TL624; columns: TL169) if there is room."""
    found = _in_stages(case, tries)
    fine = len(found) == 1 and found[-1].reached and not found[-1].misfits and not found[-1].starts_behind
    if fine or not found[0].job.has_spent:
        return found
    without = _in_stages(replace(case, start=replace(case.start, spends=False)), tries)
    return min(*((found, without) if found[-1].reached else (without, found)), key=_rank)


def _rank(tried: list[Attempt]) -> tuple[bool, int, int, tuple[int, float]]:
    """Forms that are proved come first, then those of the first tries, those that stay in tensors, those that fit."""
    return not tried[-1].reached, len(tried), tried[-1].starts_behind, _shortage(tried[-1])


def _shortage(tried: Attempt) -> tuple[int, float]:
    """How many calls ask for too much, and how often their tiles are to be halved; all of them, if no size fits."""
    if tried.blocked is not None:
        return (sys.maxsize, 0) if tried.by is fitting.check else (0, 0)
    return shortage(tried.subject) if tried.subject is not None and tried.misfits else (0, 0)


def _is_overfull(tried: Attempt) -> bool:
    return tried.reached and tried.subject is not None and is_overfull(tried.subject)


def _in_stages(case: Case, tries: Tries) -> list[Attempt]:
    """The best forms, in stages or with cores that take turns, with plenty of memory or little."""
    first = tries(case)

    def may_take_less(job: Job) -> bool:
        return shortage(subject_of(products.smallest(job))) < _shortage(first[-1])

    @cache
    def tight(at_once: bool) -> list[Attempt]:
        write = partial(first[0].job.forks["memory"].again, tight=True)
        return tries(case, write, may_take_less if at_once else lambda _: True)

    def turned(tried: list[Attempt]) -> list[Attempt]:
        fork = tried[0].job.forks.get("stages")
        return tries(case, partial(fork.again, in_turns=True)) if fork is not None else tried

    def or_tight(plenty: list[Attempt], other: Callable[[], list[Attempt]]) -> list[Attempt]:
        lacks = plenty[-1].misfits and _shortage(plenty[-1]) > (0, 0)
        if case.start.options.target == "ascendc" and lacks and "memory" in first[0].job.forks:
            found = other()
            if found and found[-1].reached and _shortage(found[-1]) < _shortage(plenty[-1]):
                return found
        return plenty

    found = or_tight(first, partial(tight, True))
    of_stages = any(tried.by in _OF_STAGES for tried in found)
    if not first[0].job.staged or not (of_stages or _is_overfull(found[-1])):
        return found
    in_turns = turned(first)
    if of_stages or _shortage(in_turns[-1]) < _shortage(first[-1]):
        in_turns = or_tight(in_turns, lambda: turned(tight(True) or tight(False)))
    return min(found, in_turns, key=_rank)
