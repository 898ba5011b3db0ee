"""What the compiler makes of arithmetic before it looks for vector instructions: ``x[i] - x[i]`` is 0 for it.

``x[i] - 0`` and ``x[i] * 1`` are plain copies.

Source: ``tir.transform.Simplify`` in front of ``AscendLowerParallelToVector`` (tilelang/engine/phase.py), TVM's
src/arith/const_fold.h and
rewrite_simplify.cc. Each rule was seen in generated text at 95acbd7f; ``x - (x - 1.0)`` stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.source.tree import nodes_of

_Number = Callable[[cst.BaseExpression], "float | None"]
_ZERO = cst.Integer("0")
_NEUTRAL: dict[type[cst.BaseBinaryOp], int] = {
    cst.Add: 0,
    cst.Subtract: 0,
    cst.Multiply: 1,
    cst.Divide: 1,
    cst.FloorDivide: 1,
}
_AUGMENTED: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    cst.AddAssign: cst.Add(),
    cst.SubtractAssign: cst.Subtract(),
    cst.MultiplyAssign: cst.Multiply(),
    cst.DivideAssign: cst.Divide(),
    cst.FloorDivideAssign: cst.FloorDivide(),
}


def is_left_a_number(statement: cst.CSTNode) -> bool:
    """True for an assignment whose value names elements, and has none when it is simplified.

    The compiler stores such a number element by element, and with it all statements of the loop.
    """
    value = assigned(statement)
    return value is not None and bool(nodes_of(value, cst.Subscript)) and not nodes_of(simplified(value), cst.Subscript)


def assigned(statement: cst.CSTNode) -> cst.BaseExpression | None:
    """What an assignment stores: ``x + y`` for ``x += y``; None for another statement."""
    if isinstance(statement, cst.AugAssign):
        operator = _AUGMENTED.get(type(statement.operator))
        target = statement.target
        return None if operator is None else cst.BinaryOperation(target, operator, statement.value)
    return statement.value if isinstance(statement, cst.Assign) else None


def literal(node: cst.BaseExpression) -> float | None:
    """The value of a number as it is written."""
    return node.evaluated_value if isinstance(node, (cst.Integer, cst.Float)) else None


def simplified(
    node: cst.BaseExpression, number: _Number = literal, *, of_integers: bool = False
) -> cst.BaseExpression:
    """An expression as the compiler sees it; itself where nothing changes.

    ``number``: the value of a part if it is a constant. ``of_integers``: its elements are integers, which a float
    makes floats.
    """
    return _Simplified(number, of_integers).of(node)


@dataclass(frozen=True)
class _Simplified:
    number: _Number
    of_integers: bool

    def of(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if self.of_integers and (inner := _opposite(node)) is not None and (twice := _opposite(inner)) is not None:
            return self.of(twice)
        if not isinstance(node, cst.BinaryOperation):
            return node
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(node.operator, cst.Multiply) and (self._is(left, 0) or self._is(right, 0)):
            return _ZERO
        if isinstance(node.operator, (cst.Divide, cst.FloorDivide)) and self._is(left, 0):
            return _ZERO
        neutral = _NEUTRAL.get(type(node.operator))
        if neutral is not None and self._is(right, neutral):
            return left
        if isinstance(node.operator, (cst.Add, cst.Multiply)) and self._is(left, neutral):
            return right
        if isinstance(node.operator, cst.Subtract):
            if _same(left, right):
                return _ZERO
            if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Add):  # (x + y) - x
                for part, other in ((left.left, left.right), (left.right, left.left)):
                    if _same(part, right):
                        return other
        return node if left is node.left and right is node.right else node.with_changes(left=left, right=right)

    def _is(self, node: cst.BaseExpression, wanted: int | None) -> bool:
        value = self.number(node)
        return value is not None and value == wanted and not (self.of_integers and isinstance(value, float))


def _opposite(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``-x``."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return node.expression
    return None


def _same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    return _text(left) == _text(right)


def _text(node: cst.BaseExpression) -> str:
    return "".join(code(node.with_changes(lpar=(), rpar=())).split())
