"""TL11x: loops that the NPU's front end does not know."""

from __future__ import annotations

from tl2npu.passes.job import Job


def normalise(job: Job) -> None:
    """``T.Serial``, steps, ``unroll_factor``, ``T.vectorized`` and so on become plain ``T.serial`` and ``T.unroll``."""
