"""What a GPU kernel has that AscendNPU IR lacks: all of it is told in one run, and the kernel stays as it is."""

from __future__ import annotations

from tl2npu.passes.job import Job


def refuse(job: Job) -> None:
    """Raise :class:`Blocked` for what has no counterpart."""
