"""TL171: copies in forms that the NPU's ``T.copy`` does not have."""

from __future__ import annotations

from tl2npu.passes.job import Job


def plain_copies(job: Job) -> None:
    """Options of the GPU go; what no single copy can do goes through a tile."""
