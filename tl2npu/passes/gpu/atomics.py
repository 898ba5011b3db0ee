"""TL16x: ``T.atomic_add`` becomes ``T.tile.atomic_add``."""

from __future__ import annotations

from tl2npu.passes.job import Job


def to_tile(job: Job) -> None:
    """Element loops and tiles of atomic additions."""
