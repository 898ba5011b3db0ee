"""TL13x: pipelined loops."""

from __future__ import annotations

from tl2npu.passes.job import Job


def limit(job: Job) -> None:
    """``num_stages`` that the NPU takes; a plain loop where a pipeline would be wrong."""
