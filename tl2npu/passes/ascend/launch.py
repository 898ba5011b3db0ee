"""TL201: ``T.Kernel(n, is_npu=True) as (cid, vid)`` becomes ``T.Kernel(n, threads=2, is_npu=True) as (cid)``.

TL235: or ``T.Kernel(2 * n, threads=1)``, a block for each vector core, where ``vid`` picks a task. The two vector cores
of a block run one program with two values of vid, each with tiles of its own. Where nothing orders them, twice as many
blocks with one vector core each do the same.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.passes.host.pass_configs import with_argument
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, mentioned, names_in


def hide_vid(job: Job, threads: int) -> None:
    """Launch with ``threads`` and the one axis that is left; raises :class:`Blocked` if vid is still used."""
    launch = job.kernel.launched
    if launch.threads is not None:
        return
    vid = launch.names[1] if len(launch.names) > 1 else None
    if vid is not None and vid != "_":
        left = next((n for n in names_in(launch.node.body) if n.value == vid), None)
        if left is not None:
            raise Blocked("TL810", left, f"`{vid}` is still used")
    edits = Edits(job.file.index)
    call = _with_threads(launch.call, threads)
    edits.replace(launch.call, call)
    name = launch.item.asname.name if launch.item.asname else None
    if isinstance(name, cst.Tuple):
        first = name.elements[0].value
        single = first.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))
        edits.replace(name, single)
    job.change("TL201" if threads == 2 else "TL234", launch.node, f"threads={threads}, one axis")
    job.apply(edits)


def _with_threads(call: cst.Call, threads: int) -> cst.Call:
    """``threads=`` right before ``is_npu=``, the rest of the call as the author laid it out."""
    position = next((i for i, a in enumerate(call.args) if a.keyword and a.keyword.value == "is_npu"), None)
    if position is None:
        return with_argument(call, f"threads={threads}")
    parsed = cst.ensure_type(cst.parse_expression(f"f(threads={threads}, x=0)"), cst.Call)
    return call.with_changes(args=(*call.args[:position], parsed.args[0], *call.args[position:]))


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
    hide_vid(job, 1)
