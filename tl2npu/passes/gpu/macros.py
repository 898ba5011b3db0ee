"""TL11x: macros of a GPU kernel, read in place."""

from __future__ import annotations

from tl2npu.passes.job import Job


def inline(job: Job) -> None:
    """Inline every ``@T.macro`` that the kernel calls."""
