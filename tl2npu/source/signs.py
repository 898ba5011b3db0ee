"""The signs of Python's operators on two values, in either syntax tree, and what they compute."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

_ROWS: tuple[tuple[str, str, Callable[[Any, Any], Any]], ...] = (
    ("+", "Add", operator.add),
    ("-", "Sub Subtract", operator.sub),
    ("*", "Mult Multiply", operator.mul),
    ("/", "Div Divide", operator.truediv),
    ("//", "FloorDiv FloorDivide", operator.floordiv),
    ("%", "Mod Modulo", operator.mod),
    ("**", "Pow Power", operator.pow),
    ("&", "BitAnd", operator.and_),
    ("|", "BitOr", operator.or_),
    ("^", "BitXor", operator.xor),
    ("<<", "LShift LeftShift", operator.lshift),
    (">>", "RShift RightShift", operator.rshift),
    ("==", "Eq Equal", operator.eq),
    ("!=", "NotEq NotEqual", operator.ne),
    ("<", "Lt LessThan", operator.lt),
    ("<=", "LtE LessThanEqual", operator.le),
    (">", "Gt GreaterThan", operator.gt),
    (">=", "GtE GreaterThanEqual", operator.ge),
)
_SIGNS = {name: sign for sign, names, _ in _ROWS for name in names.split()}

COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {sign: function for sign, _, function in _ROWS}
"""What each computes."""
ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%"))
BITWISE = frozenset(("&", "|", "^", "<<", ">>"))
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


def sign_of(node: cst.BaseBinaryOp | cst.BaseCompOp | cst.BaseAugOp | ast.operator | ast.cmpop) -> str:
    """The text of an operator, of ``+=`` too; ``?`` for matrix multiplication, ``in`` and ``is``."""
    return _SIGNS.get(type(node).__name__.removesuffix("Assign"), "?")
