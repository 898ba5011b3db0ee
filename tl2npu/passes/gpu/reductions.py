"""TL16x: reductions and scans."""

from __future__ import annotations

from tl2npu.passes.job import Job


def rewrite(job: Job) -> None:
    """``clear=False``, absmax, abssum, cumsum and the like."""
