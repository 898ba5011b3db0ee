"""Loops without the turns that begin behind the end of a tensor, where a copy of such a turn is what is wrong."""

from __future__ import annotations

from tl2npu.checks.operators import starts
from tl2npu.checks.run import check_families
from tl2npu.passes.gpu.launch import empty_turns
from tl2npu.passes.job import Job
from tl2npu.strategy.attempt import subject_of


def without_empty(job: Job) -> Job:
    """The kernel without them, if fewer copies then start behind their tensor; else the kernel itself."""
    if not (known := _behind(job)):
        return job
    made = job.copied()
    return made if empty_turns.leave_out(made) and _behind(made) < known else job


def _behind(job: Job) -> int:
    found = check_families(subject_of(job), (starts.check,))
    return sum(one.weight != "info" for one in found)
