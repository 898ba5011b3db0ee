"""Rewrites of index expressions, smallest change first: a variable becomes a number, half an extent becomes the whole.

These functions only *propose* text. Whoever uses a proposal must evaluate it again and compare it with the value that
is wanted (:mod:`tl2npu.kernel.symbolic`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from tl2npu.kernel.expressions import without_parentheses

_SUM = (cst.Add, cst.Subtract)
_PRODUCT = (cst.Multiply, cst.FloorDivide, cst.Modulo, cst.Divide)


def integer(node: cst.CSTNode) -> int | None:
    """The value of an integer literal."""
    return int(node.value.replace("_", ""), 0) if isinstance(node, cst.Integer) else None


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression with parentheses around it."""
    if node.lpar:
        return node
    return node.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))


def _weaker(node: cst.BaseExpression, operator: cst.BaseBinaryOp, right: bool) -> bool:
    """True if the operand needs parentheses below ``operator``."""
    if isinstance(node, (cst.IfExp, cst.Lambda, cst.BooleanOperation, cst.Comparison)):
        return True
    if not isinstance(node, cst.BinaryOperation) or node.lpar:
        return False
    inner = node.operator
    if isinstance(operator, _PRODUCT):
        return right or not isinstance(inner, (*_PRODUCT, cst.Power))
    if isinstance(operator, _SUM):
        if isinstance(inner, (*_PRODUCT, cst.Power)):
            return False
        return right or not isinstance(inner, _SUM)
    return True


def rebuild(node: cst.BinaryOperation, left: cst.BaseExpression, right: cst.BaseExpression) -> cst.BinaryOperation:
    """The operation with new operands, parenthesised where the grammar needs it."""
    if left is not node.left and _weaker(left, node.operator, False):
        left = parenthesised(left)
    if right is not node.right and _weaker(right, node.operator, True):
        right = parenthesised(right)
    return node.with_changes(left=left, right=right)


def put_numbers(node: cst.BaseExpression, values: Mapping[str, int]) -> cst.BaseExpression:
    """Put numbers for names and drop what becomes a neutral element; text without the names stays as it is."""
    if isinstance(node, cst.Name) and node.value in values:
        return cst.Integer(str(values[node.value]))
    if isinstance(node, cst.BinaryOperation):
        left, right = put_numbers(node.left, values), put_numbers(node.right, values)
        if left is node.left and right is node.right:
            return node
        return _fold(node, left, right)
    if isinstance(node, cst.Subscript):
        slices = [put_numbers_in_slice(element.slice, values) for element in node.slice]
        if all(new is element.slice for new, element in zip(slices, node.slice, strict=True)):
            return node
        elements = [element.with_changes(slice=new) for new, element in zip(slices, node.slice, strict=True)]
        return node.with_changes(slice=elements)
    if isinstance(node, cst.Call):
        args = tuple(arg.with_changes(value=put_numbers(arg.value, values)) for arg in node.args)
        same = all(new.value is old.value for new, old in zip(args, node.args, strict=False))
        return node if same else node.with_changes(args=args)
    return node


def put_numbers_in_slice(node: cst.BaseSlice, values: Mapping[str, int]) -> cst.BaseSlice:
    """:func:`put_numbers` for one element of a subscript."""
    if isinstance(node, cst.Index):
        value = put_numbers(node.value, values)
        return node if value is node.value else node.with_changes(value=value)
    assert isinstance(node, cst.Slice)
    lower = put_numbers(node.lower, values) if node.lower else None
    upper = put_numbers(node.upper, values) if node.upper else None
    return node if lower is node.lower and upper is node.upper else node.with_changes(lower=lower, upper=upper)


def _fold(node: cst.BinaryOperation, left: cst.BaseExpression, right: cst.BaseExpression) -> cst.BaseExpression:
    a, b = integer(left), integer(right)
    operator = node.operator
    if isinstance(operator, cst.Add):
        if a is not None and b is not None:
            return cst.Integer(str(a + b))
        if a == 0 or b == 0:
            return _in_place(node, without_parentheses(right if a == 0 else left))
    if isinstance(operator, cst.Subtract) and b == 0:
        return _in_place(node, without_parentheses(left))
    if isinstance(operator, cst.Multiply):
        if a == 0 or b == 0:
            return cst.Integer("0")
        if a == 1 or b == 1:
            return _in_place(node, right if a == 1 else left)
    if isinstance(operator, (cst.FloorDivide, cst.Modulo, cst.RightShift, cst.LeftShift)) and a == 0:
        return cst.Integer("0")
    return rebuild(node, left, right)


def _in_place(node: cst.BinaryOperation, kept: cst.BaseExpression) -> cst.BaseExpression:
    """What is left of an operation keeps the operation's own parentheses, if it has none."""
    if not node.lpar or kept.lpar or isinstance(kept, (cst.Name, cst.Integer)):
        return kept
    return kept.with_changes(lpar=node.lpar, rpar=node.rpar)


def map_expression(
    node: cst.BaseExpression, change: Callable[[cst.BaseExpression], cst.BaseExpression | None]
) -> cst.BaseExpression:
    """Replace the outermost sub-expressions for which ``change`` returns something."""
    found = change(node)
    if found is not None:
        return found
    if isinstance(node, cst.BinaryOperation):
        left, right = map_expression(node.left, change), map_expression(node.right, change)
        if left is node.left and right is node.right:
            return node
        return rebuild(node, left, right)
    if isinstance(node, cst.Call):
        args = tuple(arg.with_changes(value=map_expression(arg.value, change)) for arg in node.args)
        same = all(new.value is old.value for new, old in zip(args, node.args, strict=False))
        return node if same else node.with_changes(args=args)
    if isinstance(node, cst.UnaryOperation):
        inner = map_expression(node.expression, change)
        return node if inner is node.expression else node.with_changes(expression=inner)
    return node


def without_factor_two(node: cst.BaseExpression) -> cst.BaseExpression:
    """``x * 2`` and ``2 * x`` without the factor: right where the name of a half now means the whole."""

    def change(inner: cst.BaseExpression) -> cst.BaseExpression | None:
        if isinstance(inner, cst.BinaryOperation) and isinstance(inner.operator, cst.Multiply):
            if integer(inner.right) == 2:
                return without_parentheses(inner.left) if isinstance(inner.left, cst.Name) else inner.left
            if integer(inner.left) == 2:
                return without_parentheses(inner.right) if isinstance(inner.right, cst.Name) else inner.right
        return None

    return map_expression(node, change)
