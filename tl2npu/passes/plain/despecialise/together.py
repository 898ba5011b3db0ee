"""TL198: ``if tx < 32: ... else: ...`` around statements on whole tiles: the code of some threads becomes that of all.

A tile operator or a ``T.Parallel`` under such a condition is done by these threads, all of it. Without barriers the
order of the text is one in which the GPU may run; the compiler puts barriers between what one group stores and another
loads.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.passes.job import Job
from tl2npu.passes.plain.despecialise.order import Run, group_of, thread_names
from tl2npu.passes.plain.despecialise.program import CODES, PRIVATE, counts_threads
from tl2npu.passes.plain.threads.plainer import name_indices
from tl2npu.passes.plain.unsupported.names import uses
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of

_INDEX, _THREADS = "T.get_thread_binding", "TL184"


def merged(job: Job) -> Job:
    """A copy of the job without such conditions; the job itself if it has none, or if threads differ in another way."""
    codes = {use.code for use in uses(job)}
    if _THREADS not in codes or codes & CODES or any(u.code == _THREADS and u.shown != _INDEX for u in uses(job)):
        return job
    copy = job.copied()
    name_indices(copy)
    body, names, run = copy.located.node.body, thread_names(copy), Run.of(copy, 1, 1)
    blocks = [node for node in nodes_of(body, cst.If) if names.keys() & mentioned(node.test)]
    asked = {id(name) for node in blocks for name in names_in(node.test)}
    asked |= {id(name) for binding in names.values() for name in names_in(binding)}
    if not blocks or any(name.value in names and id(name) not in asked for name in names_in(body)):
        return job
    arms = [arm for block in blocks for arm in _arms(copy, run, block)]
    if any(len(threads) < 2 or counts_threads(copy, suite) for threads, suite in arms) or not _apart(copy, arms):
        return job
    edits = Edits(copy.file.index)
    for block in blocks:
        lines = [line for _, suite in _arms(copy, run, block) for line in suite.body]
        edits.replace_many(block, lines)
        copy.change("TL198", block, "merged the code of all warps")
    for binding in names.values():
        edits.remove(binding)
    copy.apply(edits)
    return copy


def _arms(job: Job, run: Run, block: cst.If) -> Iterator[tuple[frozenset[int], cst.BaseSuite]]:
    """The code of each group with its threads; no threads where they cannot be told."""
    threads = group_of(run, block.test)
    plain = threads is not None and not isinstance(job.file.index.parent(block), cst.If)
    yield threads if threads is not None and plain else frozenset(), block.body
    if block.orelse is not None:
        others = run.everyone - (threads or run.everyone)
        yield others if isinstance(block.orelse, cst.Else) else frozenset(), block.orelse.body


def _apart(job: Job, arms: list[tuple[frozenset[int], cst.BaseSuite]]) -> bool:
    """Whether what each thread has of its own is used by one group only: other threads have other values of it."""
    owners: dict[str, frozenset[int]] = {}
    private = {name for name, buffer in job.kernel.buffers.items() if buffer.alloc in PRIVATE}
    inside = set[int]()
    for threads, suite in arms:
        inside |= {id(name) for name in names_in(suite)}
        if any(owners.setdefault(name, threads) != threads for name in mentioned(suite) & private):
            return False
    made = [buffer.statement for buffer in job.kernel.buffers.values() if buffer.statement is not None]
    inside |= {id(name) for node in made for name in names_in(node)}
    return not any(name.value in owners and id(name) not in inside for name in names_in(job.located.node.body))
