"""TL440: the launch and the compilation, as a GPU kernel has them."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.positions import compilations
from tl2npu.kernel.style import NPUIR
from tl2npu.passes.host.signature import refuse_shared_arguments
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def rewrite(job: Job) -> None:
    """``is_npu`` and the name of the vector core go, and so does the target."""
    job.targets = None
    _launch(job)
    for place in range(len(compilations(job.located))):
        _drop_target(job, compilations(job.located)[place])


def _launch(job: Job) -> None:
    launch = job.kernel.launched
    if not launch.is_npu:
        return
    axes = len(launch.grid)
    if launch.names and len(launch.names) != axes + 1:
        raise Blocked("TL442", launch.call, f"a launch of {axes} grid axes must bind {axes + 1} names")
    own = launch.names[:axes]
    if launch.names:
        core = launch.names[axes]
        used = [name for name in names_in(launch.node.body) if name.value == core]
        if core != "_" and used:
            text = f"`{core}` is the index of the vector core, which Developer mode does not provide"
            raise Blocked("TL445", used[0], text)
    edits = Edits(job.file.index)
    kept = [arg for arg in launch.call.args if arg.keyword is None or arg.keyword.value not in ("is_npu", "pipeline")]
    inner = ", ".join(code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in kept)
    call = cst.ensure_type(cst.parse_expression(f"f({inner})"), cst.Call)
    call = call.with_changes(func=launch.call.func)
    fresh = Names(job).fresh("cid", "block_id") if not own else ""
    if launch.item.asname is None:
        name = cst.AsName(cst.Name(fresh), whitespace_before_as=cst.SimpleWhitespace(" "))
        edits.replace(launch.item, launch.item.with_changes(item=call, asname=name))
    else:
        edits.replace(launch.call, call)
        text = f"({', '.join(own)})" if axes > 1 else own[0]
        edits.replace(launch.item.asname.name, cst.parse_expression(text))
    job.change("TL440", launch.node, "rewrote the launch for Ascend C")
    job.apply(edits)


def _drop_target(job: Job, found: Compilation) -> None:
    value = found.kwargs.get("target")
    if value is None or job.located.evaluator.static(value, job.located.env) != NPUIR:
        return
    refuse_shared_arguments(job, found)
    edits = Edits(job.file.index)
    holder = job.file.index.parent(value)
    assert isinstance(holder, (cst.Arg, cst.DictElement))
    edits.remove(holder)
    job.change("TL440", value, "removed `target`: the kernel is compiled as Ascend C")
    job.apply(edits)
