"""TL420: the launch and the allocations of a kernel for AscendNPU IR."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.ascend.allocations import rename
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned

_DEVELOPER = {
    "alloc_ub": "alloc_shared",
    "alloc_L1": "alloc_shared",
    "alloc_L0A": "alloc_shared",
    "alloc_L0B": "alloc_shared",
    "alloc_L0C": "alloc_fragment",
}


def launch(job: Job) -> None:
    """``threads=`` goes, and the second name of the launch is ``_``."""
    found = job.kernel.launched
    edits = Edits(job.file.index)
    for arg in found.call.args:
        if arg.keyword is not None and arg.keyword.value == "threads":
            edits.remove(arg)
    name = found.item.asname.name if found.item.asname is not None else None
    if isinstance(name, cst.Tuple) and len(name.elements) > 1:
        used = mentioned(found.node.body)
        second = name.elements[1].value
        if isinstance(second, cst.Name) and second.value != "_":
            if second.value in used:
                raise Blocked(
                    "TL430", second, f"the kernel uses `{second.value}`, but AscendNPU IR has no vector-core index"
                )
            edits.replace(second, cst.Name("_"))
    elif name is not None:
        first = name.elements[0].value if isinstance(name, cst.Tuple) else name
        edits.replace(name, cst.parse_expression(f"({code(first).strip('()')}, _)"))
    if edits:
        job.change("TL420", found.node, "removed `threads`; the launch binds the block index and `_`")
    job.apply(edits)


def allocations(job: Job) -> None:
    """Explicit memories become ``alloc_shared`` and ``alloc_fragment``: the compiler places tiles by itself."""
    rename(job, lambda buffer: _DEVELOPER.get(buffer.alloc))
