"""Products that go from L0C straight to the tile that is used, where the compiler reads it whole."""

from __future__ import annotations

from tl2npu.checks.cross_core import cores, hand_overs, races
from tl2npu.checks.memory_plan import fitting, sharing
from tl2npu.checks.run import ROW_SPLIT_CHECKS, check_families
from tl2npu.passes.gpu.memory import renamed
from tl2npu.passes.job import Job
from tl2npu.strategy.attempt import evenness, subject_of

_FAMILIES = (
    *(*ROW_SPLIT_CHECKS, hand_overs.check, races.check, cores.check),
    *(fitting.check, fitting.check_open_sizes, sharing.check),
)
"""What a copy between two tiles that is left out can change."""


def landed(job: Job) -> Job:
    """The kernel without the tiles between products and their users: all of them, else each that it can spare."""
    every = renamed.landings(job)
    known = _objections(job) if every else (0, 0)
    for names in (every, *([name] for name in sorted(every) if len(every) > 1)):
        made = job.copied()
        if not names or not renamed.land(made, frozenset(names)):
            continue
        errors, warnings = _objections(made)
        if errors <= known[0] and warnings <= known[1]:
            job, known = made, (errors, warnings)
            if names is every:
                break
    return job


def _objections(job: Job) -> tuple[int, int]:
    """How many errors and warnings the checks have that see such copies."""
    subject = subject_of(job)
    found = [one.weight for one in (*check_families(subject, _FAMILIES), *evenness(job, subject))]
    return found.count("error"), found.count("warning")
