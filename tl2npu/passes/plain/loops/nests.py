"""TL119, TL121: nests with parallel loops, in the two dimensions that the vectoriser takes."""

from __future__ import annotations

from functools import partial

from tl2npu.kernel.model import Alloc, Loop, walk
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import INDEPENDENT, MOST_AXES, Line, axes_of, nest, node_of
from tl2npu.passes.plain.loops.distributed import Distribution
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits


def untangle(job: Job) -> None:
    """No loop inside a parallel loop, no parallel loop of more than two axes, no ``T.vectorized``."""
    until_settled(job, partial(_untangle_one, job))


def _untangle_one(job: Job) -> bool:
    loop = next((s for s in job.kernel.walk() if isinstance(s, Loop) and not s.via and _is_bad(s)), None)
    if loop is None:
        return False
    edits = Edits(job.file.index)
    new = _rewritten(job, loop)
    first = new[0].with_changes(leading_lines=node_of(loop).leading_lines)
    edits.replace_many(loop.node, [first, *new[1:]])
    if _nested(loop):
        job.change("TL121", loop.node, "one parallel loop for each statement, serial loops outside")
    else:
        job.change("TL119", loop.node, "a parallel loop of two axes")
    job.apply(edits)
    return True


def _is_bad(loop: Loop) -> bool:
    """A body that keeps arrays of its own for each iteration, or variables and has no loop, stays as it is."""
    if loop.kind not in INDEPENDENT:
        return False
    own = [stmt.buffer for stmt in walk(loop.body) if isinstance(stmt, Alloc)]
    if own and (not _nested(loop) or any(buffer.alloc != "alloc_var" for buffer in own)):
        return False
    return loop.kind == "vectorized" or len(loop.ranges) > MOST_AXES or _nested(loop)


def _nested(loop: Loop) -> bool:
    return any(isinstance(inner, Loop) for inner in walk(loop.body))


def _rewritten(job: Job, loop: Loop) -> list[Line]:
    """The loops that do the same."""
    if _nested(loop):
        return Distribution(job, loop).lines()
    return [nest(job, axes_of(loop), node_of(loop).body)]
