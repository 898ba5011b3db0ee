"""TL401: ``target="npuir"`` in place of what the GPU compiler is told."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.positions import compilations
from tl2npu.passes.host.jit import drop_arguments
from tl2npu.passes.host.jit_configs import drop_gpu_keys
from tl2npu.passes.host.pass_configs import with_argument
from tl2npu.passes.job import Job
from tl2npu.passes.uncompiled import why_uncompiled
from tl2npu.source.edits import Edits

_TARGET = 'target="npuir"'


def retarget(job: Job) -> None:
    """Targets, flags and pass_configs of the GPU go; every compilation names the target."""
    if not compilations(job.located):
        raise Blocked("TL401", job.located.node, why_uncompiled(job, "the target"))
    job.targets = None
    for place in range(len(compilations(job.located))):
        drop_arguments(job, place)
        drop_gpu_keys(job, place, frozenset())
        _name_target(job, place)


def _name_target(job: Job, place: int) -> None:
    found = compilations(job.located)[place]
    edits = Edits(job.file.index)
    if found.call is None:
        assert isinstance(found.node, cst.BaseExpression)
        edits.replace(found.node, cst.parse_expression(f"{code(found.node)}({_TARGET})"))
    elif "target" not in found.kwargs:
        edits.replace(found.call, with_argument(found.call, _TARGET))
    elif code(found.kwargs["target"]).strip("\"'") != "npuir":
        edits.replace(found.kwargs["target"], cst.SimpleString('"npuir"'))  # another target of an NPU
    job.change("TL401", found.node, f"wrote `{_TARGET}`")
    job.apply(edits)
