"""TL109: code for single threads in the words that :mod:`tl2npu.passes.plain.threads.loops` reads."""

from __future__ import annotations

from tl2npu.passes.job import Job
from tl2npu.passes.plain.threads import all_reduce, finer, unnamed
from tl2npu.passes.plain.threads.lanes import Unclear, lanes_of


def put(job: Job) -> None:
    """Name indices, write sums over all threads as additions, and give each thread one element."""
    unnamed.name_indices(job)
    for edits in (all_reduce.edits, finer.edits):
        try:
            lanes = lanes_of(job, (f"T.{all_reduce.NAME}",))
        except Unclear:
            return
        if lanes is not None:
            job.apply(edits(job, lanes))


def put_in_copy(job: Job) -> Job:
    """A copy of the job in these words."""
    copy = job.copied()
    put(copy)
    return copy
