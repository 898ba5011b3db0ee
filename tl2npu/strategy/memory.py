"""Which way a kernel goes where memory and stages matter: with plenty of memory or little, in stages or in turns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from tl2npu.checks.cross_core import hand_overs, kept, pipelines, races
from tl2npu.checks.memory_plan import fitting, sharing
from tl2npu.checks.memory_plan.fitting import is_overfull, shortage
from tl2npu.passes.gpu.memory import renamed
from tl2npu.strategy import products
from tl2npu.strategy.attempt import Attempt, Case, rebuilt, subject_of

_OF_STAGES = (sharing.check, fitting.check, hand_overs.check, races.check, kept.check, pipelines.check)
"""What objects to a loop over both cores that has stages, and may not to one in which they take turns."""


Tries = Callable[[Case, Attempt], list[Attempt]]
"""The forms of a kernel, of the text that it has."""


def best(case: Case, tries: Tries, made: Attempt) -> list[Attempt]:
    """The best forms, with tiles that save time (products of zeros: TL623, TL624; columns: TL169) if there is room."""
    found = _in_stages(case, tries, made)
    fine = len(found) == 1 and found[-1].reached and not found[-1].starts_behind and not _may_take_less(case, found[-1])
    if fine or not found[0].job.has_spent:
        return found
    way = made.job.back("spending", replace(made.job.ways, spends=False))
    without = _in_stages(case, tries, rebuilt(case, way))
    return min(*((found, without) if found[-1].reached else (without, found)), key=_rank)


def _rank(tried: list[Attempt]) -> tuple[bool, int, int, tuple[int, float]]:
    """Forms that are proved come first, then those of the first tries, those that stay in tensors, those that fit."""
    return not tried[-1].reached, len(tried), tried[-1].starts_behind, _shortage(tried[-1])


def _shortage(tried: Attempt) -> tuple[int, float]:
    """How many calls ask for too much, and how often their tiles are to be halved; all of them, if no size fits."""
    if tried.blocked is not None:
        return (sys.maxsize, 0) if tried.by is fitting.check else (0, 0)
    return shortage(tried.subject) if tried.subject is not None and tried.misfits else (0, 0)


def _may_take_less(case: Case, tried: Attempt) -> bool:
    """Whether fewer calls would ask for too much if the author's tiles were all there is."""
    if tried.subject is None or not tried.misfits:
        return False
    own = frozenset(buffer.name for buffer in case.start.kernel.buffers.values())
    authors = own - renamed.landings(tried.job)
    return _shortage(tried) > (0, 0) and shortage(tried.subject, authors) < _shortage(tried)


def _is_overfull(tried: Attempt) -> bool:
    return tried.reached and tried.subject is not None and is_overfull(tried.subject)


def _in_stages(case: Case, tries: Tries, made: Attempt) -> list[Attempt]:
    """The best forms, in stages or with cores that take turns, with plenty of memory or little."""
    first, job = tries(case, made), made.job

    @cache
    def tight() -> Attempt:
        return rebuilt(case, job.back("memory", replace(job.ways, tight=True)))

    @cache
    def tried_tight() -> list[Attempt]:
        return tries(case, tight())

    def may_take_less() -> bool:
        return not tight().built or shortage(subject_of(products.smallest(tight().job))) < _shortage(first[-1])

    def turned(tried: list[Attempt]) -> list[Attempt]:
        job = tried[0].job
        if "stages" not in job.forks:
            return tried
        return tries(case, rebuilt(case, job.back("stages", replace(job.ways, in_turns=True))))

    def or_tight(plenty: list[Attempt], other: Callable[[], list[Attempt]]) -> list[Attempt]:
        lacks = "memory" in job.forks and _may_take_less(case, plenty[-1])
        if case.start.options.target == "ascendc" and lacks:
            found = other()
            if found and found[-1].reached and _shortage(found[-1]) < _shortage(plenty[-1]):
                return found
        return plenty

    found = or_tight(first, lambda: tried_tight() if may_take_less() else [])
    of_stages = any(tried.by in _OF_STAGES for tried in found)
    if not first[0].job.staged or not (of_stages or _is_overfull(found[-1])):
        return found
    in_turns = turned(first)
    if of_stages or _shortage(in_turns[-1]) < _shortage(first[-1]):
        in_turns = or_tight(in_turns, lambda: turned(tried_tight()))
    return min(found, in_turns, key=_rank)
