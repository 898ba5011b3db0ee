"""Where a loop variable is used for its value, and not only to name a row of a split buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from tl2npu.checks.row_split.split import Split
from tl2npu.checks.subject import Placed
from tl2npu.kernel.bindings import is_arithmetic
from tl2npu.kernel.environment import Closure, Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Branch,
    Copy,
    Dim,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Scalar,
    Stmt,
    Store,
    Sync,
)
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.source.tree import children


class ValueUses:
    """Finds value uses of a halved loop variable: the compiler leaves it the local row number."""

    def __init__(self, evaluator: Evaluator, split: Split) -> None:
        self.evaluator, self.split = evaluator, split

    def of(self, placed: Placed, item: Range) -> cst.CSTNode | None:
        """The node of a value use in a statement itself (not in the statements inside it), None if there is none."""
        stmt = placed.stmt
        env = stmt.env
        for node in self._expressions(stmt, item):
            found = self._in_node(node, env, item)
            if found is not None:
                return found
        return None

    def _expressions(self, stmt: Stmt, item: Range) -> Iterator[cst.CSTNode]:
        if isinstance(stmt, Store):
            yield from self._columns(stmt.target)
            yield stmt.value.node
        elif isinstance(stmt, Let):
            # a name for plain arithmetic is followed to where it is used
            if not is_arithmetic(stmt.value.sym):
                yield stmt.value.node
        elif isinstance(stmt, Branch):
            yield stmt.cond.node
        elif isinstance(stmt, (Op, Sync)):
            for arg in stmt.args.values():
                yield from [arg.node] if isinstance(arg, Scalar) else self._columns(arg)
        elif isinstance(stmt, Loop):
            if item not in stmt.ranges:
                for inner in stmt.ranges:
                    yield from (node for node in (inner.start_node, inner.stop_node) if node is not None)
        elif isinstance(stmt, Copy):
            yield from (option.node for option in stmt.options.values())
            for operand in (stmt.src, stmt.dst):
                if operand.buffer.memory is Memory.UB:
                    yield from self._columns(operand)

    def _columns(self, operand: Operand) -> Iterator[cst.CSTNode]:
        # the row of a buffer of the cube core is wrong here for another reason (TL866, TL894)
        skipped = 1 if operand.buffer in self.split.halved or operand.buffer.memory in CUBE_MEMORY else 0
        for dim in (operand.dims or ())[skipped:]:
            yield dim.node

    def _in_node(self, node: cst.CSTNode, env: Env, item: Range) -> cst.CSTNode | None:
        if isinstance(node, cst.BinaryOperation):
            if self.split.counts_rows(self.evaluator.sym(node, env), item):
                return None
            syms = [(term, sign, self.evaluator.sym(term, env)) for term, sign in _terms(node)]
            whole = [sym if sign > 0 else -sym for _, sign, sym in syms if is_arithmetic(sym)]
            if self.split.counts_rows(sum(whole, const(0)), item):  # the rest of the sum is no arithmetic of indices
                return self._first((term for term, _, sym in syms if not is_arithmetic(sym)), env, item)
        if isinstance(node, cst.Name):
            value = env.lookup(node.value)
            if isinstance(value, Closure):
                return self._in_node(value.node, value.env, item)
            if not isinstance(value, Sym) or not value.depends_on(str(item.var)):
                return None
            return None if self.split.counts_rows(value, item) else node
        if isinstance(node, cst.Attribute):
            return self._in_node(node.value, env, item)
        if isinstance(node, cst.Subscript):
            operand = self.evaluator.operand(node, env)
            if operand is not None:
                return self._first(self._columns(operand), env, item)
        return self._first(_expressions_in(node), env, item)

    def _first(self, nodes: Iterable[cst.CSTNode], env: Env, item: Range) -> cst.CSTNode | None:
        return next((found for node in nodes if (found := self._in_node(node, env, item)) is not None), None)

    def in_dim(self, dim: Dim, env: Env, item: Range) -> bool:
        """True if an index of a region uses the variable for its value, outside of elements of split buffers."""
        return self._in_node(dim.node, env, item) is not None


def _terms(node: cst.BaseExpression, sign: int = 1) -> Iterator[tuple[cst.BaseExpression, int]]:
    """The terms of a sum, with their signs."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.operator, cst.Add) else -sign)
    else:
        yield node, sign


def _expressions_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in children(node):
        if isinstance(child, cst.Arg):
            yield child.value
        elif not isinstance(child, cst.BaseCompoundStatement):
            yield child
