"""TL859: both vector cores update the same place of a tensor, as nothing in the kernel tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.model import Buffer, Memory, Op, Operand, Side
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.tree import mentioned

_Place = tuple[Sym, ...] | None


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about a kernel as its author wrote it: a launch without ``threads`` runs every vector core, whole."""
    launch = subject.kernel.launch
    if launch is None or subject.kernel.dialect != "ascend" or launch.threads is not None:
        return
    vid = launch.names[1] if len(launch.names) > 1 else "_"
    if vid == "_" or vid not in mentioned(launch.node.body):
        who = f"`{vid}` is never used" if vid != "_" else "the launch does not bind vid"
        yield from _updates(subject, who)


def check_one_thread(subject: Subject) -> Iterator[Finding]:
    """Findings about ``threads=1`` for target pto, whose text names no number of vector cores: its simulator runs both.

    Measured: facts 1, g1_d_ub2d_1. Of atomics TL836 tells.
    """
    if subject.kernel.dialect == "ascend" and subject.target == PTO and subject.threads == 1:
        for found in _updates(subject, "target pto runs two vector cores", atomics=False):
            yield replace(found, severity="error", as_it_stands="warning")


def _updates(subject: Subject, who: str, *, atomics: bool = True) -> Iterator[Finding]:
    read: dict[Buffer, list[_Place]] = {}
    for placed in subject.statements:
        stmt = placed.stmt
        if side_of(stmt) is not Side.VECTOR:
            continue
        found = [item for item in accesses(stmt) if item.operand.buffer.memory is Memory.GM]
        for item in found:
            tensor, place = item.operand.buffer, _place(item.operand)
            if item.writes and isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
                text = f"both vector cores add to `{tensor.name}`, so each value counts twice: {who}"
                yield from (Finding("TL859", stmt.node, text),) if atomics else ()
            elif item.writes and (item.reads or place in read.get(tensor, ())):
                text = f"both vector cores read and write the same part of `{tensor.name}` and race: {who}"
                yield Finding("TL859", stmt.node, text)
        for item in found:
            if item.reads:
                read.setdefault(item.operand.buffer, []).append(_place(item.operand))


def _place(operand: Operand) -> _Place:
    """Where a part of a tensor begins."""
    return None if operand.dims is None else tuple(dim.lo for dim in operand.dims)
