"""TL431: statements in the order of their data.

Ascend C runs the statements of the cube core and those of the vector cores as two programs: a gemm may stand above the
copy that brings its operand. AscendNPU IR takes the text as one program, so the copy has to come first.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import copy_side, reads, side_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Branch, Buffer, Copy, Loop, Memory, Side, Stmt, children, walk
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def put_in_order(job: Job) -> None:
    """Reorder every body in which a tile of a hand-over is read above the copy that brings it."""
    while True:
        kernel = job.kernel
        for owner, body in _bodies(kernel.body, None):
            order = _order(body)
            if order is None:
                text = "the cores exchange data here in an order that one sequence of statements does not have"
                raise Blocked("TL437", body[0].node if owner is None else owner.node, text)
            if order != list(range(len(body))):
                _write(job, body, order)
                break
        else:
            return


def _bodies(body: Sequence[Stmt], owner: Stmt | None) -> list[tuple[Stmt | None, list[Stmt]]]:
    found: list[tuple[Stmt | None, list[Stmt]]] = [(owner, list(body))]
    for stmt in body:
        for inner in children(stmt) if isinstance(stmt, (Loop, Branch)) else ():
            found += _bodies(inner, stmt)
    return found


def _order(body: Sequence[Stmt]) -> list[int] | None:
    """Numbers of the statements in the new order; None if there is none."""
    brought = {index: _brought(stmt) for index, stmt in enumerate(body)}
    before: dict[int, set[int]] = {index: set() for index in range(len(body))}
    moved = False
    for index, stmt in enumerate(body):
        wanted = {operand.buffer for operand in reads(stmt, deep=True)}
        for writer, tiles in brought.items():
            if writer != index and tiles & wanted - brought[index]:
                before[index].add(writer)
                moved = moved or writer > index
    if not moved:
        return list(range(len(body)))
    last: dict[Side, int] = {}
    for index, stmt in enumerate(body):
        for side in sides(stmt):
            if side in last:
                before[index].add(last[side])
            last[side] = index
    return _sorted(before)


def _sorted(before: dict[int, set[int]]) -> list[int] | None:
    ready = [index for index, needed in before.items() if not needed]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for other, needed in before.items():
            if index in needed:
                needed.remove(index)
                if not needed:
                    heapq.heappush(ready, other)
    return order if len(order) == len(before) else None


def _brought(stmt: Stmt) -> set[Buffer]:
    """Tiles that a statement, or one in it, brings from the other core."""
    return {
        inner.dst.buffer
        for inner in walk([stmt])
        if isinstance(inner, Copy) and copy_side(inner.src.buffer.memory, inner.dst.buffer.memory) is Side.BOTH
    }


def sides(stmt: Stmt) -> set[Side]:
    """The cores whose programs a statement is part of; a copy between the cores belongs to the one that sends."""
    found: set[Side] = set()
    for inner in walk([stmt]):
        if children(inner):
            continue
        side = side_of(inner)
        if isinstance(inner, Copy) and side is Side.BOTH:
            side = Side.CUBE if inner.src.buffer.memory is Memory.L0C else Side.VECTOR
        found |= {side} & {Side.CUBE, Side.VECTOR} or {Side.CUBE, Side.VECTOR}
    return found


def _write(job: Job, body: Sequence[Stmt], order: Sequence[int]) -> None:
    index = job.file.index
    lines: list[cst.CSTNode] = []
    for stmt in body:
        node: cst.CSTNode = stmt.node
        above = index.parent(node)
        if isinstance(above, cst.SimpleStatementLine):
            if len(above.body) > 1:
                raise Blocked(
                    "TL437", stmt.node, "cannot reorder the statements of this line, which need another order"
                )
            node = above
        lines.append(node)
    block = index.parent(lines[0])
    if stmt_via := next((stmt for stmt in body if stmt.via), None):
        raise Blocked("TL437", stmt_via.node, "cannot reorder the statements of a macro, which need another order")
    if not isinstance(block, cst.IndentedBlock) or [*block.body] != lines:
        raise Blocked("TL437", body[0].node, "cannot reorder the statements here: one between them is not supported")
    edits = Edits(index)
    first, *rest = (lines[number] for number in order)
    assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    kept = list(itertools.dropwhile(lambda line: line.comment is None, first.leading_lines))
    edits.replace(block, block.with_changes(body=[first.with_changes(leading_lines=kept), *rest]))
    moved = next(number for place, number in enumerate(order) if place != number)
    job.change("TL431", body[moved].node, "wrote the statements in data-flow order")
    job.apply(edits)
