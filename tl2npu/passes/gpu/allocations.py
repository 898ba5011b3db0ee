"""TL13x: how the tiles are allocated."""

from __future__ import annotations

from tl2npu.passes.job import Job


def finish(job: Job) -> None:
    """``T.alloc_ub`` where ``T.alloc_shared`` would not be inferred as UB."""
