"""TL109: code for single threads in the words that :mod:`tl2npu.passes.plain.threads.loops` reads."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.threads import all_reduce, finer
from tl2npu.passes.plain.threads.lanes import Unclear, lanes_of
from tl2npu.passes.plain.unsupported.names import uses
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits

_INDEX = "get_thread_binding"


def name_indices(job: Job) -> None:
    """Name an index that the kernel asks for in place, where nothing names it yet."""
    index, launch = job.file.index, job.kernel.launch
    calls = [index.parent(use.node) for use in uses(job) if use.shown.endswith(_INDEX)]
    places = [call for call in calls if isinstance(call, cst.Call) and not isinstance(index.parent(call), cst.Assign)]
    if launch is None or not places or len(places) < len(calls) or len({code(place) for place in places}) > 1:
        return
    name, edits = Names(job).fresh("tx", "thread"), Edits(index)
    for place in places:
        edits.replace(place, cst.Name(name))
    job.apply(edits)
    first, edits = job.kernel.launched.node.body.body[0], Edits(job.file.index)
    edits.replace_many(first, [*parse(job, f"{name} = {code(places[0])}\n", first), first])
    job.apply(edits)


def put(job: Job) -> None:
    """Name indices, write sums over all threads as additions, and give each thread one element."""
    name_indices(job)
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
