"""TL13x: every buffer gets the memory, or the memories, that its uses need."""

from __future__ import annotations

from tl2npu.passes.job import Job


def assign(job: Job) -> None:
    """Split buffers by role, give products their ``init``, insert the copies between the cores."""
