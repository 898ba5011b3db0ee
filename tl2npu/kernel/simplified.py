"""What the compiler makes of arithmetic before it looks for vector instructions: ``x[i] - x[i]`` is 0 for it.

Source: ``tir.transform.Simplify`` in front of ``AscendLowerParallelToVector`` (tilelang/engine/phase.py), TVM's
src/arith/rewrite_simplify.cc. Each rule was seen in generated text at 95acbd7f; ``x - (x - 1.0)`` stays.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.source.tree import nodes_of

_ZERO = cst.Float("0.0")
_AUGMENTED: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    cst.AddAssign: cst.Add(),
    cst.SubtractAssign: cst.Subtract(),
    cst.MultiplyAssign: cst.Multiply(),
}


def is_left_a_number(statement: cst.CSTNode) -> bool:
    """True for an assignment whose value names elements, and has none when it is simplified.

    The compiler stores such a number element by element, and with it all statements of the loop.
    """
    if isinstance(statement, cst.AugAssign):
        operator = _AUGMENTED.get(type(statement.operator))
        if operator is None:
            return False
        value: cst.BaseExpression = cst.BinaryOperation(statement.target, operator, statement.value)
    elif isinstance(statement, cst.Assign):
        value = statement.value
    else:
        return False
    return bool(nodes_of(value, cst.Subscript)) and not nodes_of(_simplified(value), cst.Subscript)


def _simplified(node: cst.BaseExpression) -> cst.BaseExpression:
    if not isinstance(node, cst.BinaryOperation):
        return node
    left, right = _simplified(node.left), _simplified(node.right)
    if isinstance(node.operator, cst.Multiply) and (_is_zero(left) or _is_zero(right)):
        return _ZERO
    if isinstance(node.operator, cst.Add) and (_is_zero(left) or _is_zero(right)):
        return right if _is_zero(left) else left
    if isinstance(node.operator, cst.Subtract):
        if _same(left, right):
            return _ZERO
        if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Add):  # (x + y) - x
            for part, other in ((left.left, left.right), (left.right, left.left)):
                if _same(part, right):
                    return other
    return node.with_changes(left=left, right=right)


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and not float(node.evaluated_value)


def _same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    return _text(left) == _text(right)


def _text(node: cst.BaseExpression) -> str:
    return "".join(code(node.with_changes(lpar=(), rpar=())).split())
