"""TL201: ``T.Kernel(n, is_npu=True) as (cid, vid)`` becomes ``T.Kernel(n, threads=2, is_npu=True) as (cid)``."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.host.pass_configs import with_argument
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


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
