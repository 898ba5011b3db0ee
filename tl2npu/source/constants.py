"""Expressions of Python that come to a value, in either syntax tree. Nothing of the user's is executed."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Final

import libcst as cst

from tl2npu.source.literals import number_of, text_of
from tl2npu.source.signs import ARITHMETIC, BITWISE, COMPARISONS, COMPUTED, sign_of

Expression = cst.BaseExpression | ast.expr
Reference = cst.Name | cst.Attribute | ast.Name | ast.Attribute

UNKNOWN: Final[EllipsisType] = ...
"""In a sequence or a dict, a value that cannot be told."""
_NAMED = {"True": True, "False": False, "None": None}


class NoValue(Exception):
    """The value of an expression cannot be told."""


class Evaluator:
    """Evaluates expressions of literals. What names, attributes and calls stand for, a subclass knows."""

    def value(self, node: Expression) -> Any:
        """The value of an expression. Raises :class:`NoValue`."""
        match node:
            case cst.Name() if node.value in _NAMED:
                return _NAMED[node.value]
            case cst.Name() | cst.Attribute() | ast.Name() | ast.Attribute():
                return self.reference(node)
            case cst.Integer() | cst.Float():
                return number_of(node)
            case cst.SimpleString():
                return text_of(node)
            case ast.Constant(value=None | int() | str() as found):
                return found
            case ast.Constant(value=float(found)) if math.isfinite(found):
                return found
            case cst.Call() | ast.Call():
                return self.call(node)
            case cst.Tuple() | cst.List() | cst.Set():
                return tuple(self.items(node.elements))
            case ast.Tuple():
                return tuple(self.items(node.elts))
            case ast.List() | ast.Set():
                return list(self.items(node.elts))
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return item(self.value(node.value), self.value(index))
            case ast.Subscript():
                return item(self.value(node.value), self.value(node.slice))
        return self._computed(node)

    def _computed(self, node: Expression) -> Any:
        match node:
            case cst.BinaryOperation():
                return self.binary(sign_of(node.operator), self.value(node.left), self.value(node.right))
            case ast.BinOp():
                return self.binary(sign_of(node.op), self.value(node.left), self.value(node.right))
            case cst.Comparison():
                targets = node.comparisons
                return self._chain(node.left, [target.operator for target in targets], [t.comparator for t in targets])
            case ast.Compare():
                return self._chain(node.left, node.ops, node.comparators)
            case cst.UnaryOperation():
                return _unary(type(node.operator).__name__, self.value(node.expression))
            case ast.UnaryOp():
                return _unary(type(node.op).__name__, self.value(node.operand))
            case cst.BooleanOperation():
                return self._joined(isinstance(node.operator, cst.Or), (node.left, node.right))
            case ast.BoolOp():
                return self._joined(isinstance(node.op, ast.Or), node.values)
            case cst.IfExp() | ast.IfExp():
                return self.value(node.body if self.value(node.test) else node.orelse)
        raise NoValue

    def reference(self, node: Reference) -> Any:
        """What a name or an attribute stands for."""
        raise NoValue

    def call(self, node: cst.Call | ast.Call) -> Any:
        """What a call gives."""
        raise NoValue

    def element(self, node: Expression) -> Any:
        """The value of an element of a sequence, which may be :data:`UNKNOWN`."""
        return self.value(node)

    def items(self, nodes: Iterable[cst.BaseElement | cst.Arg | ast.expr]) -> Iterator[Any]:
        """The values of elements or positional arguments; ``*shape`` is as many as it has."""
        for node in nodes:
            starred = isinstance(node, (cst.StarredElement, ast.Starred)) or (isinstance(node, cst.Arg) and node.star)
            found = self.element(node.value if isinstance(node, (cst.BaseElement, cst.Arg, ast.Starred)) else node)
            if not starred:
                yield found
            elif isinstance(found, (tuple, list)):
                yield from found
            else:
                raise NoValue

    def binary(self, sign: str, left: Any, right: Any) -> Any:
        """What an operator makes of two values."""
        if sign == "+" and type(left) is type(right) and isinstance(left, (str, tuple, list)):
            return left + right
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            raise NoValue
        whole = isinstance(left, int) and isinstance(right, int)
        small = (sign not in ("**", "<<", ">>") or abs(right) <= 64) and (sign != "**" or abs(left) <= 1 << 20)
        if not small or (sign not in ARITHMETIC and sign != "**" and not (whole and sign in BITWISE)):
            raise NoValue
        try:
            found = COMPUTED[sign](left, right)
        except (ArithmeticError, ValueError):
            raise NoValue from None
        if isinstance(found, complex):
            raise NoValue
        return found

    def compared(self, sign: cst.BaseCompOp | ast.cmpop, left: Any, right: Any) -> Any:
        """What a comparison says of two values."""
        match sign:
            case cst.Is() | ast.Is() | cst.IsNot() | ast.IsNot():
                return (left is right) == isinstance(sign, (cst.Is, ast.Is))
            case cst.In() | ast.In() | cst.NotIn() | ast.NotIn() if isinstance(right, (tuple, list, dict, str)):
                try:
                    found = left in right
                except TypeError:
                    raise NoValue from None
                if not found and any(part is UNKNOWN for part in right):
                    raise NoValue
                return found == isinstance(sign, (cst.In, ast.In))
        text = sign_of(sign)
        ordered = isinstance(left, (int, float)) and isinstance(right, (int, float))
        if text not in COMPARISONS or (text not in ("==", "!=") and not ordered):
            raise NoValue
        return bool(COMPUTED[text](left, right))

    def _chain(
        self, first: Expression, signs: Sequence[cst.BaseCompOp | ast.cmpop], others: Sequence[Expression]
    ) -> Any:
        left, found = self.value(first), None
        for sign, other in zip(signs, others, strict=True):
            right = self.value(other)
            this = self.compared(sign, left, right)
            found, left = this if found is None else found and this, right
        return found

    def _joined(self, is_or: bool, parts: Sequence[Expression]) -> Any:
        for part in parts[:-1]:
            found = self.value(part)
            if bool(found) == is_or:
                return found
        return self.value(parts[-1])


def item(holder: Any, key: Any) -> Any:
    """``holder[key]``, of a sequence or a dict. Raises :class:`NoValue`."""
    try:
        found = holder[key] if isinstance(holder, (tuple, list, dict)) else UNKNOWN
    except (LookupError, TypeError):
        raise NoValue from None
    if found is UNKNOWN:
        raise NoValue
    return found


def _unary(sign: str, value: Any) -> Any:
    if sign == "Not":
        return not value
    if isinstance(value, (int, float)) and sign in ("Minus", "USub", "Plus", "UAdd"):
        return -value if sign in ("Minus", "USub") else +value
    raise NoValue
