"""TL169: rows that an index picks, rows under conditions of their own, and columns: loaded one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import reads
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Buffer, Kernel, Memory, Op, Operand, Range, Store
from tl2npu.kernel.regions import Axis, Region, axis_of, extent_text
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.element_copies.guards import guard, written
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
    if load is None or load.buffer.memory is not Memory.GM or load.dims is None or stmt.env is None:
        return None
    if not work.whole(target) or len(load.dims) != len(load.buffer.shape):
        return None
    row, column = work.ranges[0], work.ranges[1] if len(work.ranges) == _MATRIX else None
    if len(work.ranges) > _MATRIX:
        return None
    picked = _picked(work, load, row, column, stmt)
    conditions = [branch.cond.node for branch, _ in branches] + ([chosen.cond] if chosen.cond is not None else [])
    if picked is None or (picked.index is None and not conditions):
        return None
    names = {name for node in conditions for name in _names(work, node)}
    if column is not None and column.name in names:
        return None
    if picked.index is None and column is None:
        return None  # a tail, or an element-wise choice
    return _lines(work, stmt, load, picked, conditions, chosen)


class _Picked:
    """The texts of the indices of a row, and that of the index which picks it (None: no gather), with its axis."""

    def __init__(self, texts: list[str], index: str | None, axis: int, node: cst.BaseExpression | None) -> None:
        self.texts, self.index, self.axis, self.node = texts, index, axis, node


def _picked(work: LoopOperands, load: Operand, row: Range, column: Range | None, stmt: Store) -> _Picked | None:
    assert load.dims is not None
    assert stmt.env is not None
    texts: list[str] = []
    index: str | None = None
    position, node = -1, None
    last = len(load.dims) - 1
    for number, dim in enumerate(load.dims):
        if not isinstance(dim.node, cst.BaseExpression):
            return None
        axis = axis_of(dim.node, work.ranges, work.lets, work.evaluator, stmt.env)
        names = _names(work, dim.node)
        if number == last and column is not None:
            if axis is None or axis.range is not column:
                return None
            texts.append(_slice(axis, load.buffer))
        elif column is not None and column.name in names:
            return None
        elif row.name in names:
            text = code(work.from_tiles(dim.node, stmt))
            if axis is None:
                if index is not None or not work.evaluator.loads(work.lets.expand(dim.node), stmt.env):
                    return None
                index, position, node = text, number, dim.node
            texts.append(text)
        else:
            texts.append(code(work.from_tiles(dim.node, stmt)))
    if column is None and index is None:
        return None
    return _Picked(texts, index, position, node)


def _slice(axis: Axis, buffer: Buffer) -> str:
    assert axis.range is not None
    if axis.lo.is_zero and axis.range.extent == buffer.shape[-1]:
        return ":"
    extent = extent_text(axis.range)
    return f"0:{extent}" if axis.lo.is_zero else f"{axis.start} : {axis.start} + {extent}"


def _lines(
    work: LoopOperands,
    stmt: Store,
    load: Operand,
    picked: _Picked,
    conditions: list[cst.BaseExpression],
    chosen: Choice,
) -> list[str] | None:
    assert stmt.env is not None
    target = stmt.target.buffer
    row = work.ranges[0]
    tests = [written(work.from_tiles(node, stmt)) for node in conditions]
    if picked.index is not None:  # a GPU reads zeros in front of a tensor and behind it
        if not _is_told(work, stmt, picked, conditions, lambda index: index + 1):
            tests.append(f"{picked.index} >= 0")
        extent = load.buffer.shape[picked.axis]
        if not _is_told(work, stmt, picked, conditions, lambda index: extent - index):
            tests.append(f"{picked.index} < {code(load.buffer.shape_nodes[picked.axis])}")
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
    lines += [f"for {row.name} in T.serial({extent_text(row)}):", f"    if {' and '.join(tests)}:"]
    source = f"{load.buffer.name}[{', '.join(picked.texts)}]"
    if matrix:
        lines.append(f"        T.copy({source}, {name}[{row.name}, :])")
    else:
        value = work.names.fresh(f"{load.buffer.name.lower()}_value")
        lines += [f"        {value} = {source}", f"        {name}[{row.name}] = {value}"]
    if own:
        lines.append(f"T.copy({name}, {target.name})")
    what = "rows" if matrix else "elements"
    work.say("TL169", stmt.node, f"the {what} of `{load.buffer.name}` are loaded one by one")
    return lines


def _is_told(
    work: LoopOperands,
    stmt: Store,
    picked: _Picked,
    conditions: list[cst.BaseExpression],
    distance: Callable[[Sym], Sym],
) -> bool:
    """True if a condition says already that a distance of the index is positive."""
    assert stmt.env is not None
    assert picked.node is not None
    index = work.evaluator.sym(work.lets.expand(picked.node), stmt.env)
    for node in conditions:
        for term in guard(node, work.lets, work.evaluator, stmt.env).terms:
            if term.index is None or term.bound is None:
                continue
            spare = (distance(index) - (term.bound - term.index)).constant
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
