"""TL130: columns of a tile that nothing touches, ``T.alloc_shared((rows, columns + 1), dtype)``, go.

They keep the rows of shared memory in different banks on a GPU. On the NPU the rows would no longer be whole blocks of
32 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Memory, Opaque, Operand, Stmt, walk_with_parents
from tl2npu.kernel.ranges.reach import Reach
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_FEWEST = 2


def trim(job: Job) -> None:
    """Allocate tiles without columns that no access reaches, where their number is written as a sum."""
    wider = {buffer: found for buffer in job.kernel.buffers.values() if (found := _columns(job, buffer)) is not None}
    if not wider:
        return
    reach = Reach(job.kernel, job.file.evaluator)
    for stmt, parents in walk_with_parents(job.kernel.body):
        if isinstance(stmt, Opaque):
            return
        for access in accesses(stmt):
            operand = access.operand
            found = wider.get(operand.buffer)
            if found is not None and not _is_inside(reach, [*parents], stmt, operand, found[1]):
                del wider[operand.buffer]
    edits = Edits(job.file.index)
    for buffer, (node, _) in wider.items():
        edits.replace(buffer.shape_nodes[-1], node.deep_clone())
        job.change("TL130", buffer.node, f"`{buffer.name}` has {code(node)} columns: nothing uses the others")
    job.apply(edits)


def _columns(job: Job, buffer: Buffer) -> tuple[cst.BaseExpression, Sym] | None:
    """``columns`` of ``columns + 1``."""
    if buffer.memory is Memory.GM or len(buffer.shape) < _FEWEST or "#" in buffer.name:
        return None
    last = buffer.shape_nodes[-1]
    if not isinstance(last, cst.BinaryOperation) or not isinstance(last.operator, cst.Add):
        return None
    for left, right in ((last.left, last.right), (last.right, last.left)):
        if isinstance(right, cst.Integer):
            env = next((stmt.env for stmt in _allocations(job, buffer)), None)
            return None if env is None else (left, job.file.evaluator.sym(left, env))
    return None


def _allocations(job: Job, buffer: Buffer) -> Iterator[Stmt]:
    return (stmt for stmt in job.kernel.walk() if getattr(stmt, "buffer", None) is buffer)


def _is_inside(reach: Reach, parents: list[Stmt], stmt: Stmt, operand: Operand, columns: Sym) -> bool:
    """Whether an access ends before the columns do."""
    if operand.dims is None or len(operand.dims) != len(operand.buffer.shape):
        return False
    last = operand.dims[-1]
    bounds = reach.bounds(parents, stmt)
    if last.is_point:
        return bounds.is_not_negative(columns - 1 - last.lo)
    return last.extent is not None and bounds.is_not_negative(columns - last.lo - last.extent)
