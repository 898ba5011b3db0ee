"""What must hold of a kernel for AscendNPU IR, whoever wrote it: a person, or this program (`--to npuir`).

Source of every check: tile-ai/tilelang-ascend, branch npuir, bd7c60c3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tl2npu.checks.npuir import names, operators
from tl2npu.checks.subject import Finding, Subject

CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    names.check,
    operators.arguments,
    operators.fills,
    operators.reductions,
    operators.gemm,
    operators.copies,
    operators.launch,
    operators.parallel,
)
"""Every family; the order does not matter."""
