"""TL14x: element-wise loops in the form that the Ascend vectoriser takes."""

from __future__ import annotations

from tl2npu.passes.job import Job


def rewrite(job: Job) -> None:
    """Every ``T.Parallel`` over tiles."""
