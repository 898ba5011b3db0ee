"""TL11x: the arguments of ``tilelang.jit``."""

from __future__ import annotations

from tl2npu.passes.job import Job


def retarget(job: Job) -> None:
    """Targets, flags and pass_configs of the GPU go."""
