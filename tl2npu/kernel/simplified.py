"""What the compiler makes of arithmetic before it looks for vector instructions: ``x[i] - x[i]`` is 0 for it.

``x[i] - 0`` and ``x[i] * 1`` are plain copies.

Source: ``tir.transform.Simplify`` in front of ``AscendLowerParallelToVector`` (tilelang/engine/phase.py), TVM's
src/arith/const_fold.h and rewrite_simplify.cc. Each rule was seen in generated text at 95acbd7f; ``x - (x - 1.0)``
stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.numbers import is_zero, without_type
from tl2npu.source.literals import number_of
from tl2npu.source.tree import nodes_of

_Number = Callable[[cst.BaseExpression], "float | None"]
_SIGNS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_ZERO = cst.Integer("0")
_NEUTRAL: dict[type[cst.BaseBinaryOp], int] = {
    cst.Add: 0,
    cst.Subtract: 0,
    cst.Multiply: 1,
    cst.Divide: 1,
    cst.FloorDivide: 1,
}


def loses_vector_form(statement: cst.CSTNode) -> bool:
    """True for an assignment of a value of elements that, simplified, is a number or has one as a left operand.

    The compiler runs such a statement element by element, and with it all statements of the loop
    (ascend_lower_parallel_to_vector.cc, ``HandleSimpleCase`` and ``HandleLeftSimpleRightComplex``).
    """
    value = assigned(statement)
    if value is None or not _has_elements(value):
        return False
    found = simplified(value)
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


def assigned(statement: cst.CSTNode) -> cst.BaseExpression | None:
    """What an assignment stores: ``x + y`` for ``x += y``; None for another statement."""
    if isinstance(statement, cst.AugAssign):
        operator = getattr(cst, type(statement.operator).__name__.removesuffix("Assign"))  # Add of AddAssign
        return cst.BinaryOperation(statement.target, operator(), statement.value) if operator in _NEUTRAL else None
    return statement.value if isinstance(statement, cst.Assign) else None


def literal(node: cst.BaseExpression) -> float | None:
    """The value of a number as it is written, in an element type or not."""
    node = without_type(node)
    return number_of(node) if isinstance(node, (cst.Integer, cst.Float)) else None


def simplified(
    node: cst.BaseExpression, number: _Number = literal, *, of_integers: bool = False, of_indices: bool = False
) -> cst.BaseExpression:
    """An expression as the compiler sees it; itself where nothing changes.

    ``number``: the value of a part if it is a constant. ``of_integers``: its elements are integers, which a float
    makes floats. ``of_indices``: they are of a type in which TVM computes indices, int32 or int64.
    """
    sides = _sides(node) if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract) else []
    if of_indices and sides and (found := _with_zero(sides[0], sides[1], first=False)) is not None:
        return found
    return _Simplified(number, of_integers, of_indices).of(node)


@dataclass(frozen=True)
class _Simplified:
    number: _Number
    of_integers: bool
    of_indices: bool

    def of(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if (inner := _opposite(node)) is not None:
            if self.of_integers and (twice := _opposite(inner)) is not None:
                return self.of(twice)
            found = self.of(inner)
            return _ZERO if self._is(found, 0) else node if found is inner else node.with_changes(expression=found)
        if isinstance(node, cst.Call):
            args = [self.of(arg.value) for arg in node.args]
            if all(new is arg.value for new, arg in zip(args, node.args, strict=True)):
                return node
            return node.with_changes(
                args=[arg.with_changes(value=new) for new, arg in zip(args, node.args, strict=True)]
            )
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
            if self.of_indices and (short := _with_zero(left, right, first=True)) is not None:
                return short
        return node if left is node.left and right is node.right else node.with_changes(left=left, right=right)

    def _is(self, node: cst.BaseExpression, wanted: int | None) -> bool:
        value = self.number(node)
        return value is not None and value == wanted and not (self.of_integers and isinstance(value, float))


def _with_zero(left: cst.BaseExpression, right: cst.BaseExpression, *, first: bool) -> cst.BaseExpression | None:
    """``max(x, y) - x`` is ``max(y - x, 0)``, ``x + 5 - min(x, y)`` is ``max(x + 5 - y, 5)``: the number stands behind
    in a whole statement, in front (``first``) in a part of one."""

    def made(name: str, rest: cst.BaseExpression, difference: str) -> cst.BaseExpression:
        sides = (code(rest), difference) if first else (difference, code(rest))
        return cst.parse_expression(f"{name}({', '.join(sides)})")

    for side, other, sign in ((left, right, 1), (right, left, -1)):
        name = code(side.func) if isinstance(side, cst.Call) else ""
        limits, short = _sides(side), name.rpartition(".")[2]
        if short not in ("max", "min") or len(limits) != 2:
            continue
        terms = _sides(other) if isinstance(other, cst.BinaryOperation) and isinstance(other.operator, cst.Add) else []
        for term, rest in ((other, _ZERO), *zip(terms, terms[::-1], strict=True)):
            for one, second in (limits, limits[::-1]):
                if sign < 0 and _same(one, term):
                    name = name.removesuffix(short) + ("min" if short == "max" else "max")
                    return made(name, rest, f"{code(other)} - ({code(second)})")
                if sign > 0 and rest is _ZERO and _same(one, term):
                    return made(name, rest, f"{code(second)} - ({code(other)})")
    return None


def _opposite(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``-x``."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return node.expression
    return None


def _same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    return _text(left) == _text(right)


def _text(node: cst.BaseExpression) -> str:
    return "".join(code(node.with_changes(lpar=(), rpar=())).split())
