"""TL748: an int64 that says where a copy begins is converted to int32, in which the compiler cuts copies.

An index lies inside of its tensor, none of whose axes has more elements than an int32 counts.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.clamped import wide_indices
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.parser.front_end import read_as_the_parser
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits


def convert(job: Job) -> None:
    """Convert the names and elements that make an index an int64; the extent of a tensor stays, and is told."""
    told = read_as_the_parser(job.file, job.kernel, callers_of(job.file, job.located))
    edits, done = Edits(job.file.index), set[int]()
    for stmt, found in wide_indices(job.kernel, told):
        above = job.file.index.ancestors(found.node)
        if job.located.node.body not in above or id(found.node) in done:
            continue
        done.add(id(found.node))
        assert isinstance(found.node, cst.BaseExpression)
        text = code(found.node)
        edits.replace(found.node, expression(job, f'T.cast({text}, "int32")', stmt.node))
        job.change("TL748", stmt.node, f"`{text}` is converted to int32, in which the compiler cuts copies")
    if edits:
        job.apply(edits)
