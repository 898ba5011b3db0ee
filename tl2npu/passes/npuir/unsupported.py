"""What a GPU kernel has that AscendNPU IR lacks: all of it is told in one run, and the kernel stays as it is."""

from __future__ import annotations

from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported import refuse as unsupported


def refuse(job: Job) -> None:
    """Raise :class:`Blocked` for what has no counterpart.

    What the GPU has and an NPU has not is the same for both of its languages (TL180 to TL196): tensor cores, barriers
    and asynchronous copies, warps, foreign code, 8-bit floats, sizes that are known at run time only.
    """
    unsupported.refuse(job)
