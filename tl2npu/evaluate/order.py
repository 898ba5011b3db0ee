"""What tells the cores of a kernel to wait for each other: its author's flags, workspaces, or the order of the text."""

from __future__ import annotations

from tl2npu.evaluate.values import NotChecked
from tl2npu.kernel.access import is_on_chip, reads
from tl2npu.kernel.handover import traffic
from tl2npu.kernel.model import CUBE_MEMORY, Copy, Kernel, Loop, ScopeBlock, Sync, walk_with_parents


def has_flags(kernel: Kernel) -> bool:
    """Whether its author says it."""
    return any(isinstance(s, ScopeBlock) or (isinstance(s, Sync) and "cross" in s.op.name) for s in kernel.walk())


def workspaces(kernel: Kernel) -> dict[str, str]:
    """Tensors through which one side hands tiles to the other without a flag, with the side that reads.

    Raises :class:`NotChecked` where tiles go from core to core in no order of the text.
    """
    if kernel.dialect != "ascend" or has_flags(kernel):
        return {}
    if any(isinstance(stmt, Copy) and is_on_chip(stmt) for stmt in kernel.walk()):
        _check_text(kernel)
        return {}
    found: dict[str, str] = {}
    for tensor, entry in traffic(kernel).items():
        writers = {place.copy.src.buffer.memory in CUBE_MEMORY for place in entry.writers}
        readers = {place.copy.dst.buffer.memory in CUBE_MEMORY for place in entry.readers}
        if writers == {True} and readers == {False}:
            found[tensor.name] = "V"
        elif writers == {False} and readers == {True}:
            found[tensor.name] = "C"
    return found


def _check_text(kernel: Kernel) -> None:
    """One core makes in a loop what another one uses in a loop of its own."""
    every = list(walk_with_parents(kernel.body))
    for stmt, parents in every:
        if isinstance(stmt, Copy) and is_on_chip(stmt):
            mine = [loop for loop in parents if isinstance(loop, Loop)]
            for other, around in every:
                theirs = [loop for loop in around if isinstance(loop, Loop)]
                apart = any(a is not b for a, b in zip(mine, theirs, strict=False))
                if apart and any(operand.buffer is stmt.dst.buffer for operand in reads(other)):
                    raise NotChecked(f"`{stmt.dst.buffer.name}` is used in a loop of the other core")
