"""What must hold of a kernel for AscendNPU IR, whoever wrote it: a person, or this program (`--to npuir`).

Source of every check: tile-ai/tilelang-ascend, branch npuir, bd7c60c3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tl2npu.checks.npuir import arguments, copies, fills, gemm, launch, names, parallel, reductions
from tl2npu.checks.subject import Finding, Subject

CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    names.check,
    arguments.check,
    fills.check,
    reductions.check,
    gemm.check,
    copies.check,
    launch.check,
    parallel.check,
)
"""Every family; the order does not matter."""
