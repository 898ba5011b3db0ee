"""TL443: floats become integers by rounding in a vectorised loop of AscendNPU IR, and by cutting off here."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import is_integer
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Store, walk
from tl2npu.kernel.npuir_loops import scalar_reason
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.casts import cast_parts, is_cast, is_inside, parallel_nests
from tl2npu.passes.writing.numbers import number_type
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import walk as nodes


def say(job: Job) -> None:
    """Write out the rounding of every cast in a vectorised loop."""
    edits = Edits(job.file.index)
    for loop in parallel_nests(job.kernel.body):
        if scalar_reason(loop, job.late, job.file.names):
            continue
        for stmt in walk([loop]):
            if isinstance(stmt, Store):
                _one(job, edits, stmt)
    job.apply(edits)


def _one(job: Job, edits: Edits, stmt: Store) -> None:
    casts = [node for node in nodes(stmt.value.node) if is_cast(job, node)]
    floats = [load for load in stmt.value.loads if number_type(job, load.buffer) == "float"]
    if not floats:
        return
    for cast in casts:
        assert isinstance(cast, cst.Call)
        value, dtype = cast_parts(job, cast)
        if not any(is_inside(load, value) for load in floats) or not _may_be_integer(job, dtype):
            continue
        if not is_integer(dtype):
            text = f"`{dtype}` may be an integer type, and this loop rounds to the nearest integer"
            raise Blocked("TL442", stmt.node, text)
        if len(casts) > 1:
            raise Blocked(
                "TL442",
                stmt.node,
                f"`{code(cast)}` rounds to the nearest integer, but the expression has other casts too",
            )
        edits.replace(value, expression(job, f"T.round({code(value)})", stmt.node))
        job.change("TL443", cast, "wrote the rounding to the nearest integer of a vectorised loop")
    if not casts and number_type(job, stmt.target.buffer) == "int":
        text = f"the loop rounds the float stored in `{code(stmt.target.node)}` to the nearest integer; write a cast"
        raise Blocked("TL442", stmt.node, text)


def _may_be_integer(job: Job, dtype: str) -> bool:
    """An integer, or a parameter that some call of the file gives as one; others are taken for floats."""
    given = [caller.words.get(dtype, "") for caller in callers_of(job.file, job.located)]
    return is_integer(dtype) or any(is_integer(word) for word in given)
