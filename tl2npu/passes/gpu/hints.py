"""TL11x: hints for the GPU compiler."""

from __future__ import annotations

from tl2npu.passes.job import Job


def drop(job: Job) -> None:
    """Remove layouts, swizzles and the like, which mean nothing on an NPU."""
