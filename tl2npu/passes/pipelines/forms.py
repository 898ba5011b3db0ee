"""The forms of a kernel by name: Developer mode with two vector cores or one, the fallback, AscendNPU IR.

The passes of a language are imported when a kernel needs them: they are a quarter of a cold start.
"""

from __future__ import annotations

from tl2npu.passes.job import Job
from tl2npu.passes.pipelines.traits import Traits


def write(job: Job, kind: Traits, form: str) -> None:
    """Write a kernel in a form: ``developer``, ``developer-threads1``, ``own-blocks``, ``fallback`` or ``npuir``.

    Raises :class:`Blocked` where a pass cannot prove what it needs.
    """
    threads = 1 if form == "developer-threads1" else 2
    if form == "npuir" or kind.style == "npuir":
        from tl2npu.passes.pipelines import npuir

        if form == "npuir":
            npuir.npuir_form(job, kind)
        else:
            npuir.ascend_from_npuir(job, threads)
    elif kind.style == "gpu":
        from tl2npu.passes.pipelines import gpu

        gpu.gpu_form(job, threads)
    else:
        from tl2npu.passes.pipelines import ascend

        if form == "fallback":
            ascend.fallback_form(job, kind)
        elif form == "own-blocks":
            ascend.own_blocks_form(job)
        else:
            ascend.developer_form(job, kind, threads)
