"""TL11x: ``T.dynamic`` becomes ``T.symbolic``."""

from __future__ import annotations

from tl2npu.passes.job import Job


def rename(job: Job) -> None:
    """One ``T.symbolic`` for each name."""
