"""What ``threads=2`` asks of a kernel, as facts of its rows, and the edits that give it.

Each vector core gets half of the rows of every tile. Four things in the way can be said in the text: an axis between
the rows and the columns of a tensor, a number of rows that may be odd, rows that an index picks, and row numbers or
vectors along the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tl2npu.checks.row_split.evenness import rows_even_as_called, rows_not_even
from tl2npu.checks.run import ROW_SPLIT_CHECKS, check_families
from tl2npu.checks.subject import Finding
from tl2npu.passes.gpu import both_cores, gathered_rows, unit_axes
from tl2npu.passes.gpu.launch import even_rows
from tl2npu.passes.job import Job
from tl2npu.strategy.attempt import Case, evenness, subject_of


def obstacles(case: Case, job: Job) -> list[Finding]:
    """Why the rows of the kernel cannot be shared as it stands, in text order."""
    subject = subject_of(job)
    found = [*check_families(subject, ROW_SPLIT_CHECKS), *evenness(job, subject)]
    return [one for one in found if _counts(case, job, one)]


def _counts(case: Case, job: Job, one: Finding) -> bool:
    if one.weight != "error":
        return False
    return not case.suppressions.codes or not case.suppressions.covers(job.line(one.node), one.code)


def shared(case: Case, job: Job) -> tuple[Job, list[Finding]]:
    """The kernel with rows that both cores can share, or as it is, and what stands in the way then."""
    done, left = _shared(case, job)
    return (done, left) if left else (_for_other_calls(case, done), left)


def _shared(case: Case, job: Job) -> tuple[Job, list[Finding]]:
    first = left = obstacles(case, job)
    if not left:
        return job, left
    if (done := _closed(case, job, left)) is not None:
        return done, []
    now = job
    for edit in (gathered_rows.one_by_one, both_cores.share):
        now = _edited(now, edit) or now
    left = obstacles(case, now) if now is not job else first
    if now is not job and (done := _closed(case, now, left)) is not None:
        return done, []
    still = {one.code for one in left}
    return job, [one for one in first if one.code in still] or first


def _closed(case: Case, job: Job, left: Sequence[Finding]) -> Job | None:
    """The kernel without what axes of tensors and odd numbers of rows are in the way of, None if there is more."""
    if any(one.lacks == "axes" for one in left) and (made := _edited(job, unit_axes.insert)) is not None:
        job, left = made, obstacles(case, made)
    if left and all(one.lacks == "even rows" for one in left):
        made = _edited(job, lambda job: even_rows.ask(job, rows_not_even(subject_of(job))))
        if made is not None:
            job, left = made, obstacles(case, made)
    return None if left else job


def _for_other_calls(case: Case, job: Job) -> Job:
    """The kernel right for odd rows as well, where only the calls of the file have even ones and a GPU takes both."""
    tiles = rows_even_as_called(subject_of(job), job.split, job.known_even)
    made = _edited(job, lambda job: even_rows.ask(job, tiles))
    return job if made is None or obstacles(case, made) else made


def _edited(job: Job, edit: Callable[[Job], bool]) -> Job | None:
    """The kernel with an edit, None where it has nothing to do."""
    made = job.copied()
    return made if edit(made) else None
