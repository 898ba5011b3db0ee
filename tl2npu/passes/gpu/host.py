"""TL12x: host code of the same file."""

from __future__ import annotations

from tl2npu.passes.job import Job


def retarget(job: Job) -> None:
    """Devices, profilers and the like."""
