"""TL433: vector cores that take different work become blocks of their own.

Where ``vid`` does not split the rows of a tile but chooses what a core works on, and no cube core takes part, a block
of Ascend C is two blocks of AscendNPU IR: ``cid = block // 2`` and ``vid = block % 2``.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Kernel, Sync
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits

_ACROSS = ("cross", "sync_all", "sync_block", "all_core")


def refuse_meetings(kernel: Kernel) -> None:
    """Raise :class:`Blocked` if the two vector cores wait for each other: blocks cannot."""
    for stmt in kernel.walk():
        if isinstance(stmt, Sync) and any(word in stmt.op.name for word in _ACROSS):
            text = (
                f"`T.{stmt.op.name}` synchronises the vector cores; blocks of AscendNPU IR cannot wait for each other"
            )
            raise Blocked("TL430", stmt.node, text)


def for_vector_cores(job: Job) -> None:
    """Launch twice as many blocks, and take ``cid`` and ``vid`` from the number of the block."""
    launch = job.kernel.launched
    extents = [arg.value for arg in launch.call.args if arg.keyword is None]
    pair = launch.item.asname.name if launch.item.asname is not None else None
    if len(extents) != 1 or not isinstance(pair, cst.Tuple) or len(launch.names) != 2:
        raise Blocked("TL430", launch.call, "the launch does not bind names to its block and its vector core")
    block = Names(job).fresh("block", "block_id")
    lines = [f"{name} = {block} {sign} 2" for name, sign in zip(launch.names, ("//", "%"), strict=True) if name != "_"]
    body = launch.node.body
    first = body.body[0]
    assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    edits = Edits(job.file.index)
    edits.replace(extents[0], cst.parse_expression(f"{factor(code(extents[0]))} * 2"))
    edits.replace(pair, cst.parse_expression(f"({block}, _)"))
    edits.replace_many(first, [*parse(job, "\n".join(lines) + "\n", first), first])
    job.change("TL433", launch.node, "wrote one block for each vector core")
    job.apply(edits)
