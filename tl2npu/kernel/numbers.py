"""Plain numbers in the source."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tl2npu.kernel.element_types import is_known, plain
from tl2npu.source.constants import Evaluator, NoValue

_LITERALS = Evaluator()


def value_of(node: cst.BaseExpression) -> float | None:
    """The value of a number, with operators on numbers."""
    try:
        found = _LITERALS.value(node)
        return float(found) if type(found) in (int, float) else None
    except (NoValue, OverflowError):
        return None


def is_float(node: cst.BaseExpression, floats: Collection[str]) -> bool:
    """True for a number that is a Python float, a float32 beside elements; ``floats``: the names of such numbers."""
    if isinstance(node, cst.Float):
        return True
    if isinstance(node, cst.Name):
        return node.value in floats
    if isinstance(node, cst.UnaryOperation):
        return is_float(node.expression, floats)
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, cst.Divide) or any(is_float(one, floats) for one in (node.left, node.right))
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return isinstance(node.func.value, cst.Name) and node.func.value.value == "math"


def is_zero(node: cst.BaseExpression) -> bool:
    """True for a plain 0, also for one in an element type: ``T.float16(0.0)``, ``T.cast(0.0, dtype)``."""
    return value_of(without_type(node)) == 0.0


def without_type(node: cst.BaseExpression) -> cst.BaseExpression:
    """What ``T.float16(x)`` and ``T.cast(x, dtype)`` convert; any other expression itself."""
    if not isinstance(node, cst.Call) or not node.args or not isinstance(node.func, cst.Attribute):
        return node
    name = node.func.attr.value
    given = {("cast", 2): 0, ("Cast", 2): 1}.get((name, len(node.args)))
    if given is None and is_known(plain(name)) and len(node.args) == 1:
        given = 0
    return node if given is None else node.args[given].value
