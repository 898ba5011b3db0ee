"""TL130: ``T.alloc_ub`` where the compiler would not infer UB from ``T.alloc_shared``.

The inference looks at copies, reductions and tile operations; a tile that only element-wise loops touch would end in
L1 (measured: g3b_ubpar). What stands under a condition on the factory's arguments may not be there at all.
"""

from __future__ import annotations

from collections import Counter

import libcst as cst

from tl2npu.kernel.memory.inferred import Use, certain_uses, inferred
from tl2npu.kernel.model import Memory
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def finish(job: Job) -> None:
    """Name the memory of tiles that are not inferred as UB although the vector cores use them."""
    kernel = job.kernel
    found = certain_uses(kernel, job.late)
    edits = Edits(job.file.index)
    bare = set()
    for buffer in job.kernel.buffers.values():
        use = found.get(buffer, Use())
        if buffer.alloc != "alloc_shared" or use.cube or use.to_l0 or inferred(use) is not Memory.L1:
            continue
        assert isinstance(buffer.node, cst.Call)
        spelled = imports.spelling(job, "alloc_ub", buffer.node.func)
        bare |= {spelled} & {"alloc_ub"}
        edits.replace(buffer.node.func, cst.parse_expression(spelled))
        job.change("TL130", buffer.node, f"`{buffer.name}` is only used element by element: wrote alloc_ub")
    job.apply(edits)
    imports.complete(job, bare, set())


def drop_unused(job: Job, before: Counter[str]) -> None:
    """Tiles that the passes left without a use go with them; what the author allocated for nothing stays.

    ``before``: how often the file mentioned each name.
    """
    mentioned = Counter(name.value for name in names_in(job.located.node))
    edits = Edits(job.file.index)
    for buffer in job.kernel.buffers.values():
        unused = mentioned[buffer.name] == 1 and before[buffer.name] != 1
        if buffer.memory is not Memory.GM and buffer.statement is not None and unused:
            edits.remove(buffer.statement)
            job.change("TL130", buffer.statement, f"removed the unused `{buffer.name}`")
    job.apply(edits)
