"""TL169: rows that indices pick, rows under conditions of their own, and columns: loaded one after another.

An index picks where it is loaded, or moves from row to row by other steps than 1, as ``m // width`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Buffer, Kernel, Memory, Op, Operand, Range, Stmt, Store
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.regions import Axis, Region, axis_of, extent_text
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.element_copies.guards import all_of, ends_with, guard, written
from tl2npu.passes.gpu.element_copies.operands import LoopOperands
from tl2npu.passes.gpu.element_copies.values import Choice, choice, load_of
from tl2npu.passes.writing.numbers import element_type
from tl2npu.source.tree import nodes_of

_MATRIX = 2


def row_loop(work: LoopOperands, branches: Sequence[tuple[Branch, bool]], stmt: Store) -> list[str] | None:
    """The statements for ``tile[i, j] = A[..., index(i), ..., start + j]``, perhaps under a condition on ``i``.

    None if the store is of another form, or if one copy could do it.
    """
    chosen = choice(stmt, work.evaluator)
    load = load_of(chosen.value, stmt, work.evaluator)
    target = stmt.target
    if load is None or load.buffer.memory is not Memory.GM or load.dims is None:
        return None
    if not work.whole(target) or len(load.dims) != len(load.buffer.shape):
        return None
    row, column = work.ranges[0], work.ranges[1] if len(work.ranges) == _MATRIX else None
    if len(work.ranges) > _MATRIX:
        return None
    conditions = [branch.cond.node for branch, _ in branches] + ([chosen.cond] if chosen.cond is not None else [])
    picked = rows_of(work, load, row, column, stmt)
    if picked is None or not (picked.picks or conditions):
        return None
    if chosen.cond is not None and (chosen.other is None or is_zero(chosen.other)):
        conditions = [part for node in conditions for part in _without_end(work, node, picked, stmt)]
    if column is not None and any(column.name in _names(work, node) for node in conditions):
        return None
    if not picked.picks and column is None:
        return None  # a tail, or an element-wise choice
    return _lines(work, stmt, load, picked, conditions, chosen)


def _without_end(work: LoopOperands, node: cst.BaseExpression, rows: Rows, stmt: Store) -> Sequence[cst.BaseExpression]:
    """The parts of a condition that say more than where the row ends, which a copy knows: behind it are zeros."""
    if rows.axis is None:
        return [node]
    terms = guard(node, work.lets, work.evaluator, stmt.env).terms
    left = [term.node for term in terms if not ends_with(term, rows.axis.index, rows.buffer.shape[-1], work.ranges)]
    return left if len(left) < len(terms) else [node]


@dataclass(frozen=True, eq=False)
class Rows:
    """One row of many of a tensor.

    ``texts`` of its indices, those of ``axis``, if it is longer than one element, left out; the expressions of the
    indices which pick it (``picks``, none: no gather), by axis. ``names``: what of the loop body the texts read.
    """

    buffer: Buffer
    texts: list[str]
    axis: Axis | None
    picks: dict[int, cst.BaseExpression]

    def part(self) -> str:
        """The row as the source or target of a copy."""
        if self.axis is None:
            return f"{self.buffer.name}[{', '.join(self.texts)}]"
        return f"{self.buffer.name}[{', '.join([*self.texts, _slice(self.axis, self.buffer)])}]"

    def start(self) -> str:
        """Its first element."""
        return f"{self.buffer.name}[{', '.join([*self.texts, *([self.axis.start] if self.axis else [])])}]"


def rows_of(work: LoopOperands, load: Operand, row: Range, column: Range | None, stmt: Stmt) -> Rows | None:
    """The rows that a load or a store goes through, with the columns last; None if it goes through something else."""
    assert load.dims is not None
    texts: list[str] = []
    picks: dict[int, cst.BaseExpression] = {}
    along: Axis | None = None
    last = len(load.dims) - 1
    for number, dim in enumerate(load.dims):
        if not isinstance(dim.node, cst.BaseExpression):
            return None
        axis = axis_of(dim.node, work.ranges, work.lets, work.evaluator, stmt.env)
        names = _names(work, dim.node)
        if number == last and column is not None:
            if axis is None:  # `x[i * pitch + j]`: the row is a part of the last axis
                axis = axis_of(dim.node, [column], work.lets, work.evaluator, stmt.env)
                if axis is None or not work.is_inside(dim.node, axis.lo, stmt):
                    return None  # in front of the tensor it would be a part of a row
                picks[number] = cst.parse_expression(axis.start)
            if axis.range is not column:
                return None
            along = axis
        elif column is not None and column.name in names:
            return None
        elif row.name in names:
            text = code(work.in_own_words(dim.node, stmt))
            if axis is None:
                picks[number] = dim.node
            texts.append(text)
        else:
            texts.append(code(work.in_own_words(dim.node, stmt)))
    if column is None and not picks:
        return None
    return Rows(load.buffer, texts, along, picks)


def _slice(axis: Axis, buffer: Buffer) -> str:
    assert axis.range is not None
    if axis.lo.is_zero and axis.range.extent == buffer.shape[-1]:
        return ":"
    extent = extent_text(axis.range)
    return f"0:{extent}" if axis.lo.is_zero else f"{axis.start} : {axis.start} + {extent}"


def _lines(
    work: LoopOperands, stmt: Store, load: Operand, picked: Rows, conditions: list[cst.BaseExpression], chosen: Choice
) -> list[str] | None:
    target = stmt.target.buffer
    row = work.ranges[0]
    tests = tests_of_rows(work, stmt, picked, conditions)
    other = chosen.other
    if other is not None and not isinstance(other, (cst.Integer, cst.Float, cst.UnaryOperation)):
        return None
    matrix = len(work.ranges) == _MATRIX
    name = target.name
    own = matrix and (is_operand(work.kernel, target) or not _same_type(work, load.buffer, target))
    if own:
        name = work.tile(Region(load.buffer, tuple(Axis(r.var, "0", r) for r in work.ranges)))
    keeps = bool(conditions) and chosen.cond is None
    lines = []
    if not keeps:
        lines.append(
            f"T.clear({name})" if other is None or code(other) in ("0", "0.0") else f"T.fill({name}, {code(other)})"
        )
    elif own:
        return None
    lines.append(f"for {row.name} in T.serial({extent_text(row)}):")
    lines += [f"    {line}" for line in work.own_words([*tests, picked.start()])]
    depth = "    "
    if tests:
        lines.append(f"    if {all_of(tests)}:")
        depth += "    "
    source = picked.part()
    if matrix:
        lines.append(f"{depth}T.copy({source}, {name}[{row.name}, :])")
    else:
        value = work.names.fresh(f"{load.buffer.name.lower()}_value")
        lines += [f"{depth}{value} = {source}", f"{depth}{name}[{row.name}] = {value}"]
    if own:
        lines.append(f"T.copy({name}, {target.name})")
    what = "rows" if matrix else "elements"
    work.say("TL169", stmt.node, f"the {what} of `{load.buffer.name}` are loaded one by one")
    return lines


def tests_of_rows(work: LoopOperands, stmt: Stmt, rows: Rows, conditions: Sequence[cst.BaseExpression]) -> list[str]:
    """When a row is there: under the conditions of the statement, inside of its tensor."""
    tests = [written(work.in_own_words(node, stmt)) for node in conditions]
    for axis, node in rows.picks.items():  # a GPU reads zeros in front of a tensor and behind it, and stores nothing
        index = work.evaluator.sym(work.lets.expand(node), stmt.env)
        extent = rows.buffer.shape[axis]
        text = rows.texts[axis] if axis < len(rows.texts) or rows.axis is None else rows.axis.start
        if not (_is_told(work, stmt, index + 1, conditions) or work.is_inside(node, index, stmt)):
            tests.append(f"{text} >= 0")
        if not (_is_told(work, stmt, extent - index, conditions) or work.is_inside(node, extent - 1 - index, stmt)):
            tests.append(f"{text} < {code(rows.buffer.shape_nodes[axis])}")
    return tests


def _is_told(work: LoopOperands, stmt: Stmt, distance: Sym, conditions: Sequence[cst.BaseExpression]) -> bool:
    """True if a condition says already that a distance of the index is positive."""
    for node in conditions:
        for term in guard(node, work.lets, work.evaluator, stmt.env).terms:
            if term.index is None or term.bound is None:
                continue
            spare = (distance - (term.bound - term.index)).constant
            if spare is not None and spare >= 0:
                return True
    return False


def _names(work: LoopOperands, node: cst.BaseExpression) -> set[str]:
    return {name.value for name in nodes_of(work.lets.expand(node), cst.Name)}


def is_operand(kernel: Kernel, buffer: Buffer) -> bool:
    """True if a gemm reads a tile."""
    return any(
        isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM and any(o.buffer is buffer for o in reads(stmt))
        for stmt in kernel.walk()
    )


def _same_type(work: LoopOperands, left: Buffer, right: Buffer) -> bool:
    return element_type(work.job, left) == element_type(work.job, right)
