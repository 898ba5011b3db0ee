"""Products that go from L0C straight to the tile that is used, where the compiler reads it whole."""

from __future__ import annotations

from collections import Counter

from tl2npu.checks.cross_core import cores, hand_overs, races
from tl2npu.checks.memory_plan import fitting, sharing
from tl2npu.checks.run import ROW_SPLIT_CHECKS, check_families
from tl2npu.passes.gpu.memory import renamed
from tl2npu.passes.job import Job
from tl2npu.passes.names import tiles
from tl2npu.strategy.attempt import evenness, subject_of

_FAMILIES = (
    *(hand_overs.check, races.check, *ROW_SPLIT_CHECKS, cores.check),
    *(sharing.check, fitting.check, fitting.check_open_sizes),
)
"""What a copy between two tiles that is left out can change, the ones first that object most."""


def landed(job: Job) -> Job:
    """The kernel without the tiles between products and their users: all of them, else as many as it can spare."""
    if hands_over_too_often(job):
        return job
    waiting = [(names, False)] if (names := sorted(renamed.landings(job))) else []
    known: tuple[int, int] | None = None
    best = job
    while waiting:
        names, taken = waiting.pop(0)
        made = job.copied()
        if not renamed.land(made, frozenset(names), taken=taken):
            continue
        written = made.copied()  # what the checks say of it is kept for whoever judges it
        tiles.number_again(written)
        if (found := _objections(written, known or (0, 0))) is None and known is None:
            known = _objections(job)
            found = _objections(written, known)
        if found is not None:
            job, best, known = made, written, found
        elif len(names) > 1:
            half = len(names) // 2
            waiting[:0] = [(names[:half], False), (names[half:], False)]
        elif not taken:
            waiting.insert(0, (names, True))
    return best


def hands_over_too_often(job: Job) -> bool:
    """Whether flags do not suffice for all hand-overs: neither fewer tiles nor a split of rows changes their number."""
    count, limit = hand_overs.crossings(subject_of(job))
    return count > limit


def smallest(job: Job) -> Job:
    """The kernel without any of these tiles, whatever the checks say: it needs no less memory."""
    made = job.copied()
    renamed.land(made, renamed.landings(made))
    return made


def _objections(job: Job, most: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """How many errors and warnings the checks have that see such copies; None where either is more than in ``most``."""
    subject = subject_of(job)
    weights = Counter(one.weight for one in evenness(job, subject))
    for family in _FAMILIES:
        weights.update(one.weight for one in check_families(subject, (family,)))
        if most is not None and (weights["error"] > most[0] or weights["warning"] > most[1]):
            return None
    return weights["error"], weights["warning"]
