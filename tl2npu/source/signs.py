"""The signs of Python's binary operators."""

from __future__ import annotations

import libcst as cst

_SIGNS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.Power: "**",
}


def sign_of(operator: cst.BaseBinaryOp) -> str:
    """The text of a binary operator, ``?`` for matrix multiplication."""
    return _SIGNS.get(type(operator), "?")
