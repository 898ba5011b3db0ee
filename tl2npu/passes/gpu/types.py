"""TL11x: dtype objects become strings."""

from __future__ import annotations

from tl2npu.passes.job import Job


def to_strings(job: Job) -> None:
    """``T.float16`` and its like, wherever the factory uses them as a value."""
