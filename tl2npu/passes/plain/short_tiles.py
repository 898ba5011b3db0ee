"""TL628: a tile that is shorter than the loops over its elements, ``s = T.alloc_fragment([heads])`` and ``s[i]`` below
``block``.

On a GPU a fragment takes the layout of the loops, so that nobody notices. In UB the elements behind the tile belong to
another one. Where nothing but loops of one length uses a tile, it gets that length.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import accesses_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Buffer, Loop, Range
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def lengthen(job: Job) -> None:
    """Allocate as many elements as the loops go through, where a call asks for more than the tile has."""
    edits = Edits(job.file.index)
    loops = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Loop)]
    ranges = {item.var: item for loop in loops for item in loop.ranges if item.start.is_zero and item.step is None}
    for buffer in job.kernel.buffers.values():
        made = buffer.is_tile and isinstance(buffer.node, cst.Call)
        uses = [access.operand for _, access in accesses_of(job.kernel, buffer)] if made else []
        if not uses or any(not use.is_indexed or len(use.dims or ()) != len(buffer.shape) for use in uses):
            continue
        for axis, (size, node) in enumerate(zip(buffer.shape, buffer.shape_nodes, strict=True)):
            found = [ranges.get((use.dims or ())[axis].lo) for use in uses]
            item = found[0]
            if item is None or any(other is None or other.extent != item.extent for other in found):
                continue
            if item.stop_node is not None and item.extent != size and _is_short(job, item, buffer, axis):
                used = code(item.stop_node)
                text = f"`{buffer.name}` has `{code(node)}` elements, but loops use `{used}`: wrote that"
                edits.replace(node, item.stop_node.deep_clone())
                job.change("TL628", buffer.node, f"`{code(node)}` -> `{used}`")
                job.note("TL628", buffer.node, text, "warning")
    job.apply(edits)


def _is_short(job: Job, item: Range, buffer: Buffer, axis: int) -> bool:
    for caller in callers_of(job.file, job.located):
        used, size = item.extent.evaluate(caller.values), buffer.shape[axis].evaluate(caller.values)
        if used is not None and size is not None and used > size:
            return True
    return False
