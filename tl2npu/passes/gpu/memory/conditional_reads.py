"""TL737: an element of global memory that the compiler would read under a condition gets a name first."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.conditional_reads import conditional_reads
from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits


def bind(job: Job) -> None:
    """Give every such element a name, in front of the statement that reads it."""
    names = Names(job)
    until_settled(job, lambda: _bind(job, names))


def _bind(job: Job, names: Names) -> bool:
    edits = Edits(job.file.index)
    for found in conditional_reads(job.kernel, job.late):
        line = job.file.index.parent(found.store.node)
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            continue
        name = names.fresh(f"{found.load.buffer.name.lower()}_value")
        edits.replace_many(line, [cst.parse_statement(f"{name} = {code(found.load.node)}"), line])
        edits.replace(found.load.node, cst.Name(name))
        text = f"`{code(found.load.node)}` has a name now: the compiler prints a declaration into the statement else"
        job.change("TL737", found.store.node, text)
    job.apply(edits)
    return bool(edits)
