"""TL235: a block for each vector core, where ``vid`` picks a task: ``T.Kernel(2 * n, threads=1)`` as one axis.

The two vector cores of a block run one program with two values of vid, each with tiles of its own. Where nothing orders
them, twice as many blocks with one vector core each do the same.
"""

from __future__ import annotations

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.ascend import launch
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, mentioned

_NUMBERS = {f"tilelang.language.get_block_{name}" for name in ("binding", "bindings", "extent", "extents")}


def launch_twice(job: Job) -> None:
    """Launch twice as many blocks; the kernel keeps its statements, and the numbers of block and core their names.

    Raises :class:`Blocked` where the kernel asks for those numbers in another way.
    """
    found = job.kernel.launched
    asked = next((call for call in calls_in(found.node.body) if job.file.names.resolve(call.func) in _NUMBERS), None)
    if asked is not None:
        raise Blocked("TL220", asked, f"`{code(asked)}` has another meaning with a block for each vector core")
    used = mentioned(found.node.body)
    cid, vid = (name if name in used and name != "_" else "" for name in (*found.names[:2], "", "")[:2])
    if vid:
        block = Names(job).fresh("block", "block_id")
        numbers = [f"{name} = {block} {sign} 2" for name, sign in ((cid, "//"), (vid, "%")) if name]
        edits = Edits(job.file.index)
        first = found.node.body.body[0]
        edits.replace_many(first, [*parse(job, "\n".join(numbers), found.node), first])
        grid = found.call.args[0].value
        edits.replace(grid, expression(job, f"2 * {factor(code(grid))}", found.node))
        assert found.item.asname is not None
        edits.replace(found.item.asname.name, expression(job, f"({block}, _)", found.node))
        job.change("TL235", found.node, "a block for each vector core, which keeps its tiles and its task")
        job.apply(edits)
    launch.hide_vid(job, 1)
