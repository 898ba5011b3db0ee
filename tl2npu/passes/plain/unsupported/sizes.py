"""TL195: tiles whose extents are known at run time only."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job


def symbolic_tiles(job: Job) -> Iterator[tuple[cst.CSTNode, str]]:
    """On-chip buffers that depend on ``T.dynamic``, a scalar parameter, the block or a loop; with a message each."""
    for buffer in job.kernel.buffers.values():
        if not buffer.is_tile or buffer.alloc == "alloc_global":
            continue
        for extent, node in zip(buffer.shape, buffer.shape_nodes, strict=False):
            if job.late.is_late(extent):
                yield buffer.node, f"the extent `{code(node)}` of the tile `{buffer.name}` is known at run time only"
                break
