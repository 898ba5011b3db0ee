"""TL16x: ``T.alloc_local``, ``T.alloc_reducer``."""

from __future__ import annotations

from tl2npu.passes.job import Job


def to_buffers(job: Job) -> None:
    """Thread-private storage becomes variables or tiles."""
