"""Buffers lose the axis of their slots where no value passes from one iteration to another in them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.flow import Flow, reads_of, slots, writes_of
from tl2npu.kernel.model import Alloc, Buffer, Copy, Memory, Op, Operand, Stmt
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_ON_CHIP = (Memory.L1, Memory.L0C, Memory.UB)


def drop_where_possible(job: Job, wanted: Sequence[str]) -> None:
    """Take the axes of slots from those of the buffers in which no value stays from one iteration to another."""
    flow = Flow(job.kernel)
    free = []
    for name in wanted:
        try:
            _check(flow, job.kernel.buffers[name])
        except Blocked:
            continue
        free.append(name)
    drop(job, free)


def drop(job: Job, wanted: Sequence[str]) -> None:
    """Take the axes of slots from the buffers of these names; raises :class:`Blocked` where values stay in a slot."""
    flow = Flow(job.kernel)
    edits = Edits(job.file.index)
    for name in wanted:
        buffer = job.kernel.buffers[name]
        extra = len(buffer.shape) - 2
        if extra <= 0 or buffer.memory not in _ON_CHIP:
            continue
        _check(flow, buffer)
        _without_axes(job, edits, flow, buffer, extra)
        job.change("TL301", buffer.node, f"`{name}`: wrote one tile for the slots; the compiler adds its own")
    job.apply(edits)


def _check(flow: Flow, buffer: Buffer) -> None:
    """Every read must see a write of the same slot and the same iteration."""
    for stmt, operand in reads_of(flow.kernel.body, buffer):
        slot = slots(operand)
        if slot is None:
            raise Blocked("TL326", stmt.node, f"cannot tell which slot of `{buffer.name}` is read")
        if not _written(flow, stmt, buffer, slot):
            text = f"a slot of `{buffer.name}` carries a value to another iteration"
            raise Blocked("TL326", stmt.node, text)


def _written(flow: Flow, stmt: Stmt, buffer: Buffer, slot: Sequence[Sym]) -> bool:
    if any(s is stmt and _starts(stmt, o) for s, o in writes_of([stmt], buffer)):
        return True
    for step in flow.before(stmt):
        if any(writes_of([loop], buffer) for loop in step.left):
            # a loop that was left writes it too: only what its own iterations wrote before may be read
            return False
        found = writes_of([step.stmt], buffer)
        if not found:
            continue
        return all(list(slots(o) or ()) == list(slot) for _, o in found) and found[0][0] is step.stmt
    return False


def _starts(stmt: Stmt, operand: Operand) -> bool:
    """True for a product that does not add to what the slot held."""
    return isinstance(stmt, Op) and not any(a.reads for a in accesses(stmt) if a.operand is operand)


def _without_axes(job: Job, edits: Edits, flow: Flow, buffer: Buffer, extra: int) -> None:
    seen: set[int] = set()
    for stmt in flow.kernel.walk():
        if isinstance(stmt, Alloc) and stmt.buffer is buffer:
            for node in buffer.shape_nodes[:extra]:
                edits.remove(_element(job, node))
        if isinstance(stmt, (Copy, Op)):
            for access in accesses(stmt):
                node = access.operand.node
                if access.operand.buffer is buffer and access.operand.dims is not None and id(node) not in seen:
                    seen.add(id(node))
                    edits.replace(node, _shorter(access.operand, extra))


def _element(job: Job, node: cst.CSTNode) -> cst.CSTNode:
    above = job.file.index.parent(node)
    return above if isinstance(above, cst.Element) else node


def _shorter(operand: Operand, extra: int) -> cst.BaseExpression:
    """The operand without its slots; the name alone where the whole tile is left."""
    assert isinstance(operand.node, cst.Subscript)
    assert operand.dims is not None
    rest = operand.dims[extra:]
    shape = operand.buffer.shape[extra:]
    whole = all(d.covers(s) for d, s in zip(rest, shape, strict=True))
    starts = all(d.is_point and d.lo.is_zero for d in rest)
    if whole or starts:
        return operand.node.value
    return operand.node.with_changes(slice=operand.node.slice[extra:])
