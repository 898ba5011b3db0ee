"""TL201: ``T.Kernel(n, is_npu=True) as (cid, vid)`` becomes ``T.Kernel(n, threads=2, is_npu=True) as (cid)``."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.job import Job
from tl2npu.passes.pass_configs import with_argument
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def hide_vid(job: Job, threads: int) -> None:
    """Launch with ``threads`` and the one axis that is left; raises :class:`Blocked` if vid is still used."""
    launch = job.kernel.launch
    assert launch is not None
    if launch.threads is not None:
        return
    vid = launch.names[1] if len(launch.names) > 1 else None
    if vid is not None and vid != "_":
        left = next((n for n in names_in(launch.node.body) if n.value == vid), None)
        if left is not None:
            raise Blocked("TL810", left, f"`{vid}` is still used")
    edits = Edits(job.file.index)
    call = with_argument(launch.call, f"threads={threads}")
    position = next((i for i, a in enumerate(call.args) if a.keyword and a.keyword.value == "is_npu"), None)
    if position is not None and position < len(call.args) - 1:
        values = list(call.args)
        moved = values.pop()
        values.insert(position, moved)
        commas = [(a.comma, a.whitespace_after_arg) for a in call.args]
        values = [a.with_changes(comma=c, whitespace_after_arg=w) for a, (c, w) in zip(values, commas)]
        call = call.with_changes(args=values)
    edits.replace(launch.call, call)
    name = launch.item.asname.name if launch.item.asname else None
    if isinstance(name, cst.Tuple):
        first = name.elements[0].value
        single = first.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))
        edits.replace(name, single)
    job.change("TL201" if threads == 2 else "TL234", launch.node, f"threads={threads}, one axis")
    job.apply(edits)
