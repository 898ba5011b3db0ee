"""TL13x: ``T.clear`` and ``T.fill`` become ``T.tile.fill``."""

from __future__ import annotations

from tl2npu.passes.job import Job


def rewrite(job: Job) -> None:
    """Fills of vector tiles."""
