"""Temporary tiles that an operator asks for and nobody else reads."""

from __future__ import annotations

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Op, Operand
from tl2npu.passes.job import Job


def is_scratch(job: Job, stmt: Op) -> bool:
    """True if the value that an operator leaves in its ``Tmp`` is read by nothing."""
    tile = stmt.args.get("Tmp")
    if not isinstance(tile, Operand):
        return False
    if tile.buffer is _buffer(stmt, "B"):
        return True  # the result overwrites it
    for other in job.kernel.walk():
        for access in accesses(other):
            if access.operand.buffer is not tile.buffer or not access.reads:
                continue
            if isinstance(other, Op) and access.operand is other.args.get("Tmp"):
                continue
            return False
    return True


def _buffer(stmt: Op, name: str) -> object:
    arg = stmt.args.get(name)
    return arg.buffer if isinstance(arg, Operand) else None
