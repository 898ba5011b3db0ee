"""What a loop over tasks need not do again for each of them: loads and values that are the same in every block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Memory, Op, Side, Stmt, Store, walk
from tl2npu.source.tree import names_in


def once(kernel: Kernel, lines: Sequence[cst.BaseStatement], block: str) -> set[int]:
    """The ids of those lines of a launch that may stand in front of a loop over its blocks.

    They fill tiles on the chip that nothing else fills, from what does not depend on the block. Hand-overs between the
    cores stay where they are: both sides have to be met as often.
    """
    own: dict[int, list[Stmt]] = {}
    for stmt in kernel.body:
        for line in lines:
            if line is stmt.node or (isinstance(line, cst.SimpleStatementLine) and stmt.node in line.body):
                own.setdefault(id(line), []).append(stmt)
    bound = {block}
    found: set[int] = set()
    for line in lines:
        inside = list(walk(own.get(id(line), [])))
        if inside and all(map(_only_fills, inside)) and bound.isdisjoint(name.value for name in names_in(line)):
            found.add(id(line))
        else:
            bound |= assigned_names(line)
    before = -1
    while before != len(found):
        before = len(found)
        written = {buffer for line in lines if id(line) not in found for buffer, writes in _uses(own, line) if writes}
        found = {id(line) for line in lines if id(line) in found and all(b not in written for b, _ in _uses(own, line))}
    return found


def _only_fills(stmt: Stmt) -> bool:
    if stmt.via or not isinstance(stmt, (Copy, Op, Store, Loop)) or side_of(stmt) is Side.BOTH:
        return False
    written = [access.operand.buffer.memory for access in accesses(stmt) if access.writes]
    return isinstance(stmt, Loop) or (bool(written) and not {Memory.GM, Memory.VAR} & {*written})


def _uses(own: dict[int, list[Stmt]], line: cst.BaseStatement) -> Iterator[tuple[Buffer, bool]]:
    for stmt in walk(own.get(id(line), [])):
        for access in accesses(stmt):
            yield access.operand.buffer, access.writes
