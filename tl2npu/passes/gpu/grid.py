"""TL13x: the launch."""

from __future__ import annotations

from tl2npu.passes.job import Job


def fold(job: Job, threads: int) -> None:
    """Fold the grid into one axis and launch with ``is_npu=True``."""
