"""TL411: ``num_stages`` of more than two. AscendNPU IR keeps two buffers; the number is a hint, and says that."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.model import Loop
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_BUFFERS = 2


def limit(job: Job) -> None:
    """Write 2 where a number above 2 stands; a name stays, as it means something to its caller."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Loop) or stmt.kind != "pipelined" or stmt.call is None or stmt.via:
            continue
        for arg in stmt.call.args:
            value = arg.value
            named = arg.keyword is not None and arg.keyword.value == "num_stages"
            if named and isinstance(value, cst.Integer) and int(value.value) > _BUFFERS:
                edits.replace(value, cst.Integer(str(_BUFFERS)))
                job.change("TL411", arg, f"num_stages: {value.value} -> {_BUFFERS}")
    job.apply(edits)
