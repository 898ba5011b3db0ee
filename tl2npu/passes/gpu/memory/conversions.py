"""TL144, TL145: a vector that is converted, or a mask, is not made again where its tile still has it, nor in each turn.

Element-wise statements convert their operands, and compare for their conditions, where they stand. The vectors of a
block, as scales and gates, and its masks are the same in all of its loops: a person makes them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import libcst as cst

from tl2npu.kernel.access import accesses, scalars, written
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Loop, Memory, Op, Stmt, walk_with_parents
from tl2npu.passes.gpu.launch.grid import is_outside
from tl2npu.passes.gpu.memory import repeated
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan

_Values = Mapping[Stmt, tuple[Buffer, Set[Buffer]]]
"""Statements that make a value, each with its tile and with what it reads."""


def once(job: Job, is_made: Callable[[Buffer], bool]) -> None:
    """Of values that go to a tile which holds nothing else; ``is_made``: a pass made the tile."""
    _lift(job, _values(job, is_made))
    repeated.drop(job, is_made)


def _values(job: Job, is_made: Callable[[Buffer], bool]) -> _Values:
    """Conversions of whole vectors in UB, and comparisons; nothing else writes these tiles."""
    writers: dict[Buffer, list[Stmt]] = {}
    for stmt in job.kernel.walk():
        for access in accesses(stmt):
            if access.writes:
                writers.setdefault(access.operand.buffer, []).append(stmt)
    found: dict[Stmt, tuple[Buffer, Set[Buffer]]] = {}
    for tile, stmts in writers.items():
        if is_made(tile) and len({code(stmt.node) for stmt in stmts}) == 1 and all(_is_value(job, s) for s in stmts):
            for stmt in stmts:
                found[stmt] = tile, {access.operand.buffer for access in accesses(stmt) if access.reads}
    return found


def _is_value(job: Job, stmt: Stmt) -> bool:
    if isinstance(stmt, Op):
        outside = all(is_outside(job, scalar.node) for scalar in scalars(stmt))
        return stmt.op.name == "tile.compare" and not stmt.via and outside
    if not isinstance(stmt, Copy):
        return False
    a, b = stmt.src.buffer, stmt.dst.buffer
    whole = stmt.src.is_whole and stmt.dst.is_whole and not stmt.options and not stmt.via
    vectors = a.memory is b.memory is Memory.UB and a.shape == b.shape and len(a.shape) == 1
    return whole and vectors and a.dtype != b.dtype


def _lift(job: Job, found: _Values) -> None:
    """A value more in front of the outermost loop that leaves what it is made of as it is."""
    lifted: dict[Loop, dict[Buffer, Stmt]] = {}
    for stmt, parents in walk_with_parents(job.kernel.body):
        loop = _outermost(found[stmt][1], parents) if stmt in found else None
        if loop is not None:
            lifted.setdefault(loop, {}).setdefault(found[stmt][0], stmt)
    plan = Plan(job)
    for loop, values in lifted.items():
        for tile, stmt in values.items():
            assert isinstance(stmt.node, cst.BaseSmallStatement)
            plan.before(loop.node, [cst.SimpleStatementLine([stmt.node.deep_clone()])])
            _tell(job, stmt, f"`{tile.name}` is made once, in front of the loop")
    plan.apply()


def _tell(job: Job, stmt: Stmt, text: str) -> None:
    job.change("TL144" if isinstance(stmt, Copy) else "TL145", stmt.node, text)


def _outermost(sources: Set[Buffer], parents: Sequence[Stmt]) -> Loop | None:
    found = None
    for parent in reversed(parents):
        plain = isinstance(parent, Loop) and isinstance(parent.node, cst.For) and parent.kind != "parallel"
        if not isinstance(parent, Loop) or not plain or parent.via or sources & written(parent.body):
            break
        found = parent
    return found
