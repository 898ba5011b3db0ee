"""TL465: copies whose size is not given, given twice, or given where no size is read."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory, Operand


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every copy."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Copy):
            message = _complaint(stmt)
            if message:
                yield Finding("TL465", stmt.node, message)


def _complaint(stmt: Copy) -> str:
    width, size = stmt.options.get("coalesced_width"), stmt.options.get("size")
    if width is not None and isinstance(width.node, (cst.List, cst.Tuple)):
        return f"the third argument of T.copy is not its size: write `size={code(width.node)}` or slices"
    sides = (stmt.src, stmt.dst)
    if size is not None and any(_is_slice(side) for side in sides):
        return "this copy has slices and `size`; give one of them"
    if size is None and all(_is_start(side) for side in sides):
        return "both sides are start indices, so the copy has no size"
    if all(side.buffer.memory is Memory.GM for side in sides):
        return "AscendNPU IR cannot copy from global memory to global memory"
    return ""


def _is_slice(operand: Operand) -> bool:
    return any(not dim.is_point for dim in operand.dims or ())


def _is_start(operand: Operand) -> bool:
    return operand.dims is not None and not _is_slice(operand)
