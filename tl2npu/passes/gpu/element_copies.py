"""TL16x: element loops that only move data become copies."""

from __future__ import annotations

from tl2npu.passes.job import Job


def to_copies(job: Job) -> None:
    """``T.Parallel`` loops between global memory and tiles; global operands inside arithmetic are loaded first."""
