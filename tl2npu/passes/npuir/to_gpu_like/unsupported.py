"""What a kernel for AscendNPU IR has that has no way to Ascend C."""

from __future__ import annotations

from tl2npu.dialects.catalogue import DEVELOPER
from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Alloc, Op, ScopeBlock, Stmt, Sync
from tl2npu.passes.job import Job


def refuse(job: Job) -> None:
    """Raise :class:`Blocked` for a kernel in Expert mode, and for operators without a counterpart."""
    for stmt in job.kernel.walk():
        what = _expert(stmt)
        if what is not None:
            text = f"{what} belongs to the Expert mode of AscendNPU IR, which is not supported"
            raise Blocked("TL441", stmt.node, text)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Op) and SHORT.get(stmt.op.name) in _WITHOUT:
            raise Blocked("TL442", stmt.node, f"T.{stmt.op.name} has no proven counterpart in Ascend C")


def _expert(stmt: Stmt) -> str | None:
    """The part of a statement that only Expert mode has."""
    if isinstance(stmt, ScopeBlock):
        return "this block"
    if isinstance(stmt, Alloc):
        return f"T.{stmt.buffer.alloc}" if stmt.buffer.alloc.removeprefix("alloc_") in _MEMORIES else None
    if isinstance(stmt, (Op, Sync)):
        return None if DEVELOPER in stmt.op.modes or not stmt.op.modes else f"T.{stmt.op.name}"
    return None


_WITHOUT = frozenset(
    """
    vshr vbitcast verf transpose pad flip gather reshape interleave deinterleave arange concat
    """.split()
)
_MEMORIES = frozenset({"L1", "L0A", "L0B", "L0C", "ub"})
