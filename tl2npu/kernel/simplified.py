"""What the compiler makes of arithmetic before it looks for vector instructions: ``x[i] - x[i]`` is 0 for it.

Source: ``tir.transform.Simplify`` in front of ``AscendLowerParallelToVector`` (tilelang/engine/phase.py), TVM's
src/arith/rewrite_simplify.cc and const_fold.h. Each rule was seen in generated text at 95acbd7f; ``x - (x - 1.0)``
stays.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.numbers import is_zero
from tl2npu.source.tree import nodes_of

_ZERO = cst.Float("0.0")
_SIGNS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_AUGMENTED: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    cst.AddAssign: cst.Add(),
    cst.SubtractAssign: cst.Subtract(),
    cst.MultiplyAssign: cst.Multiply(),
    cst.DivideAssign: cst.Divide(),
}


def loses_vector_form(statement: cst.CSTNode) -> bool:
    """True for an assignment of a value of elements that, simplified, is a number or has one as a left operand.

    The compiler runs such a statement element by element, and with it all statements of the loop
    (ascend_lower_parallel_to_vector.cc, ``HandleSimpleCase`` and ``HandleLeftSimpleRightComplex``).
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
    if not _has_elements(value):
        return False
    found = _simplified(value)
    return not _has_elements(found) or _has_number_first(found)


def _has_elements(node: cst.BaseExpression) -> bool:
    return bool(nodes_of(node, cst.Subscript))


def _has_number_first(node: cst.BaseExpression) -> bool:
    """Whether an operation has a number left of elements; ``max(0.0, x[i])`` has an instruction."""
    sides = _sides(node)
    if len(sides) == 2 and not _has_elements(sides[0]) and _has_elements(sides[1]):
        return isinstance(node, cst.BinaryOperation) or not (is_zero(sides[0]) and isinstance(sides[1], cst.Subscript))
    return any(map(_has_number_first, sides))


def _sides(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _SIGNS):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return [node.expression]
    if isinstance(node, cst.Call) and code(node.func).rpartition(".")[2] in ("max", "min"):
        return [arg.value for arg in node.args]
    return []


def _simplified(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _simplified(node.expression)
        return _ZERO if is_zero(inner) else node.with_changes(expression=inner)
    if isinstance(node, cst.Call):
        return node.with_changes(args=[arg.with_changes(value=_simplified(arg.value)) for arg in node.args])
    if not isinstance(node, cst.BinaryOperation):
        return node
    left, right = _simplified(node.left), _simplified(node.right)
    if isinstance(node.operator, cst.Multiply) and (is_zero(left) or is_zero(right)):
        return _ZERO
    if isinstance(node.operator, cst.Divide) and is_zero(left):
        return _ZERO
    if isinstance(node.operator, cst.Add) and (is_zero(left) or is_zero(right)):
        return right if is_zero(left) else left
    if isinstance(node.operator, cst.Subtract):
        if _same(left, right):
            return _ZERO
        if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Add):  # (x + y) - x
            for part, other in ((left.left, left.right), (left.right, left.left)):
                if _same(part, right):
                    return other
    return node.with_changes(left=left, right=right)


def _same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    return _text(left) == _text(right)


def _text(node: cst.BaseExpression) -> str:
    return "".join(code(node.with_changes(lpar=(), rpar=())).split())
