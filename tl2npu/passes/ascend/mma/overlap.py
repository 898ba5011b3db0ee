"""Products whose stages overlap in straight-line code are put one after the other.

A pipeline that was unrolled by hand ("waves") loads the next tile into L1, copies this one to L0 and multiplies the one
before. Flags apart, the text is a program whose order of dependencies is the order of its lines. So the lines may stand
in any order that keeps every pair which touches the same data; the one written here brings the loads of a product
directly before it and the copies of its result directly after it. The compiler overlaps them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.flow import differ, slots
from tl2npu.kernel.model import CUBE_MEMORY, Copy, Let, Op, Operand, Stmt, Sync, children
from tl2npu.passes.ascend import sync
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned


def one_after_the_other(job: Job) -> bool:
    """Order the products of every block; False if they stand so already.

    Flags of a core go first; whoever calls this has proved that all of them may go.
    """
    if all(_order(run) == run for run in _runs(job)):
        return False
    sync.remove_sync(job, sync.IN_A_CORE)
    for number in range(len(_runs(job))):  # each is read again, the one before may have been written
        run = _runs(job)[number]
        order = _order(run)
        if order != run:
            _write(job, run, order)
    return True


def _write(job: Job, run: Sequence[Stmt], order: Sequence[Stmt]) -> None:
    edits = Edits(job.file.index)
    lines = {id(_line(job, place)): _line(job, stmt) for place, stmt in zip(run, order, strict=True)}
    block = job.file.index.parent(_line(job, run[0]))
    assert isinstance(block, cst.IndentedBlock)
    edits.replace(block, block.with_changes(body=[lines.get(id(line), line) for line in block.body]))
    for stmt in order:
        if set(order[: order.index(stmt)]) - set(run[: run.index(stmt)]):
            job.change("TL301", stmt.node, "moved next to its product; the compiler overlaps products itself")
    job.apply(edits)


def _is_product(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.kind is Kind.MMA


def _runs(job: Job) -> list[list[Stmt]]:
    """Statements that follow each other with nothing between but what orders the pipes of one core."""
    runs: list[list[Stmt]] = [[]]
    for block in (job.kernel.body, *(inner for stmt in job.kernel.walk() for inner in children(stmt))):
        runs.append([])
        for stmt in block:
            if isinstance(stmt, Sync) and stmt.op.name in sync.IN_A_CORE:
                continue
            if (isinstance(stmt, (Copy, Let)) or _is_product(stmt)) and _alone(job, stmt):
                runs[-1].append(stmt)
            else:
                runs.append([])
    return [run for run in runs if sum(map(_is_product, run)) > 1]


def _line(job: Job, stmt: Stmt) -> cst.CSTNode:
    above = job.file.index.parent(stmt.node)
    return above if isinstance(above, cst.SimpleStatementLine) else stmt.node


def _alone(job: Job, stmt: Stmt) -> bool:
    """True for a statement that has its line for itself."""
    line = _line(job, stmt)
    return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and not stmt.via


def _order(run: Sequence[Stmt]) -> list[Stmt]:
    """The statements with what a product needs directly before it and the copies of its result after it."""
    needs = {stmt: [first for first in run[:i] if _ordered(first, stmt)] for i, stmt in enumerate(run)}
    behind: dict[Stmt, set[Stmt]] = {}
    for stmt in run:
        behind[stmt] = {stmt}.union(*(behind[first] for first in needs[stmt]))
    late: dict[Stmt, list[Stmt]] = {}
    for product in filter(_is_product, run):
        for load in _loads_of(needs, product):
            late.setdefault(load, []).append(product)
    order: dict[Stmt, None] = {}
    begun: set[Stmt] = set()

    def put(stmt: Stmt) -> None:
        begun.add(stmt)
        for first in needs[stmt]:
            if not _takes(stmt, first):  # its tile is about to be replaced: what is made of it comes before that
                for product in late.get(first, ()):
                    if product not in order and not behind[product] & (begun - order.keys()):
                        put(product)
            if first not in order:
                put(first)
        order[stmt] = None
        for result in run:
            if _is_product(stmt) and _takes(result, stmt) and all(first in order for first in needs[result]):
                order.setdefault(result)

    for stmt in run:
        if stmt not in late and stmt not in order:
            put(stmt)
    return list(order)


def _loads_of(needs: Mapping[Stmt, Sequence[Stmt]], stmt: Stmt) -> Iterator[Stmt]:
    """The copies into memories of the cube, directly or not, that bring what a statement reads."""
    for first in needs[stmt]:
        if isinstance(first, Copy) and first.dst.buffer.memory in CUBE_MEMORY and _takes(stmt, first):
            yield first
            yield from _loads_of(needs, first)


def _takes(reader: Stmt, writer: Stmt) -> bool:
    """True if a statement reads what another one may have written."""
    written = [a.operand for a in accesses(writer) if a.writes]
    return any(a.reads and _meet(a.operand, operand) for a in accesses(reader) for operand in written)


def _ordered(first: Stmt, second: Stmt) -> bool:
    """True if two statements may not change places: one writes data, or binds a name, that the other one uses."""
    bound = {stmt.name for stmt in (first, second) if isinstance(stmt, Let)}
    if all(bound & mentioned(stmt.node) for stmt in (first, second)):
        return True
    mine, other = list(accesses(first)), list(accesses(second))
    return any((a.writes or b.writes) and _meet(a.operand, b.operand) for a in mine for b in other)


def _meet(left: Operand, right: Operand) -> bool:
    """False only for different buffers and for different slots of one."""
    if left.buffer is not right.buffer:
        return False
    here, there = slots(left), slots(right)
    return here is None or there is None or not differ(here, there)
