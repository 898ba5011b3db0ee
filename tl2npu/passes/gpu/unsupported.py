"""TL18x: what an Ascend NPU has no counterpart for."""

from __future__ import annotations

from tl2npu.passes.job import Job


def refuse(job: Job) -> None:
    """Raise :class:`Blocked` for the first construct without an equivalent."""
