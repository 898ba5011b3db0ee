"""``T.annotate_layout`` of tiles that a hand-written pipeline read: ``gemm_v0`` has its own idea of their layout."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tl2npu.kernel.model import Op
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of


def drop(job: Job, tiles: Collection[str]) -> None:
    """Take the entries of these buffers from every ``annotate_layout``, and the call with the last of them."""
    edits = Edits(job.file.index)
    makers: set[str] = set()
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name != "annotate_layout":
            continue
        table = next(iter(nodes_of(stmt.call, cst.Dict)), None)
        if table is None:
            continue
        entries = [e for e in table.elements if isinstance(e, cst.DictElement)]
        ours = [e for e in entries if isinstance(e.key, cst.Name) and e.key.value in tiles]
        if not ours:
            continue
        makers |= {name.value for entry in ours for name in names_in(entry.value)}
        if len(ours) == len(table.elements):
            edits.remove(stmt.node)
        else:
            for entry in ours:
                edits.remove(entry)
        job.change("TL301", stmt.node, "removed: gemm_v0 chooses the layout of its tiles")
    job.apply(edits)
    imports.drop_unused(job, makers - set(tiles))
