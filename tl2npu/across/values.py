"""The constants of another module: literals, simple arithmetic on them, and tuples, lists and dicts of them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from types import EllipsisType
from typing import Any

from tl2npu.source.signs import ARITHMETIC, COMPARISONS, COMPUTED, sign_of

Value = int | float | str | bool | None | EllipsisType | tuple["Value", ...] | list["Value"] | dict[Any, "Value"]
"""``...`` stands for a value in a dict that cannot be told."""

_LIMIT = 1 << 63


class NoValue(Exception):
    """The value of an expression cannot be told."""


class Dotted(str):
    """The dotted name of something of a library: the key of a dict, never a value."""


def evaluate(node: ast.expr, known: Callable[[ast.expr], Value]) -> Value:
    """The value of an expression; ``known`` gives that of names and attributes. Raises :class:`NoValue`."""
    if isinstance(node, ast.Constant):
        found = node.value
        if found is None or isinstance(found, (int, str)) or (isinstance(found, float) and math.isfinite(found)):
            return found
        raise NoValue
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = known(node)
        if isinstance(value, Dotted):
            raise NoValue
        return value
    if isinstance(node, ast.Tuple):
        return tuple(evaluate(item, known) for item in node.elts)
    if isinstance(node, ast.List):
        return [evaluate(item, known) for item in node.elts]
    if isinstance(node, ast.Dict):
        return _dict(node, known)
    if isinstance(node, ast.Subscript):
        return element(evaluate(node.value, known), evaluate(node.slice, known))
    if isinstance(node, ast.UnaryOp):
        return _unary(node, evaluate(node.operand, known))
    if isinstance(node, ast.BinOp):
        return _binary(node.op, evaluate(node.left, known), evaluate(node.right, known))
    if isinstance(node, ast.IfExp):
        return evaluate(node.body if evaluate(node.test, known) else node.orelse, known)
    if isinstance(node, ast.BoolOp):
        for item in node.values:
            value = evaluate(item, known)
            if bool(value) == isinstance(node.op, ast.Or):
                return value
        return value
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compare(node.ops[0], evaluate(node.left, known), evaluate(node.comparators[0], known))
    raise NoValue


def element(container: Value, key: Value) -> Value:
    """``container[key]``. Raises :class:`NoValue`."""
    found: Value = ...
    try:
        if isinstance(container, dict):
            found = container.get(key, ...)
        elif isinstance(container, (tuple, list)) and isinstance(key, int):
            found = container[key]
    except (LookupError, TypeError):
        raise NoValue from None
    if found is ...:
        raise NoValue
    return found


def _dict(node: ast.Dict, known: Callable[[ast.expr], Value]) -> Value:
    """All keys must be known, values need not."""
    made: dict[Any, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = evaluate(value, known)
            if not isinstance(inner, dict):
                raise NoValue
            made = _merged(made, inner)
            continue
        name = known(key) if isinstance(key, (ast.Name, ast.Attribute)) else evaluate(key, known)
        if not isinstance(name, (int, float, str)):
            raise NoValue
        try:
            made = _merged(made, {name: evaluate(value, known)})
        except NoValue:
            made = _merged(made, {name: ...})
    return made


def _merged(one: dict[Any, Value], other: dict[Any, Value]) -> dict[Any, Value]:
    """What comes last stands last: one key may be spelled in two ways."""
    return {**{key: value for key, value in one.items() if key not in other}, **other}


def _unary(node: ast.UnaryOp, value: Value) -> Value:
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(value, (int, float)) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return -value if isinstance(node.op, ast.USub) else +value
    raise NoValue


def _binary(operator_node: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(left, str) and isinstance(right, str) and isinstance(operator_node, ast.Add):
        return left + right
    if isinstance(left, dict) and isinstance(right, dict) and isinstance(operator_node, ast.BitOr):
        return _merged(left, right)
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        raise NoValue
    sign = sign_of(operator_node)
    whole = isinstance(left, int) and isinstance(right, int)
    small = sign == "**" and abs(left) <= 1 << 20 and abs(right) <= 64
    if sign not in ARITHMETIC and not small and not (whole and sign in ("<<", ">>") and 0 <= right <= 64):
        raise NoValue
    try:
        result = COMPUTED[sign](left, right)
    except (ArithmeticError, ValueError):
        raise NoValue from None
    if not isinstance(result, (int, float)) or not abs(result) < _LIMIT:
        raise NoValue
    return result


def _compare(operator_node: ast.cmpop, left: Value, right: Value) -> bool:
    sign = sign_of(operator_node)
    ordered = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if sign not in COMPARISONS or (sign not in ("==", "!=") and not ordered):
        raise NoValue
    return bool(COMPUTED[sign](left, right))
