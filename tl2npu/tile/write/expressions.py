"""Element expressions as TileLang text."""

from __future__ import annotations

import math

from tl2npu.kernel.symbolic import Div, Mod, Sym
from tl2npu.tile.expr import BINARY, COMPARISONS, LOGIC, UNARY, Call, Const, Expr, Index, Load, Opaque
from tl2npu.tile.write.integers import integer

_ATOM, _UNARY, _NOT = 20, 11, 3


def expression(expr: Expr, names: dict[str, str]) -> str:
    """The text of an expression. ``names``: how axis variables are written."""
    return _text(expr, names)[0]


def truth(expr: Expr, names: dict[str, str]) -> str:
    """The text of a condition: numbers are compared with 0, as TileLang takes bools only."""
    return _condition(expr, names, 0)


def _condition(expr: Expr, names: dict[str, str], level: int) -> str:
    """The text of a condition as an operand of an operator of this ``level``."""
    part = _text(expr, names)
    return _inside(part if _is_bool(expr) else (f"{_inside(part, 5)} != 0", 4), level)


def _is_bool(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return expr.dtype == "bool" or expr.op in COMPARISONS | LOGIC
    return expr.dtype == "bool"


def _text(expr: Expr, names: dict[str, str]) -> tuple[str, int]:
    match expr:
        case Const():
            return number(expr)
        case Index():
            return integer(expr.value, names), _level(expr.value)
        case Load():
            index = ", ".join(integer(part, names) for part in expr.index)
            return f"{expr.buffer}[{index}]" if index else expr.buffer, _ATOM
        case Opaque():
            return (expr.text if expr.text.isidentifier() else f"({expr.text})"), _ATOM
        case Call():
            return _call(expr, names)


def _level(value: Sym) -> int:
    """How tightly the text of an integer binds."""
    if value.constant is not None:
        return _ATOM if value.constant >= 0 else _UNARY
    if isinstance(value.atom, (Div, Mod)):
        return BINARY["mod"][1]
    return BINARY["add"][1] if value.atom is None else _ATOM


def _call(expr: Call, names: dict[str, str]) -> tuple[str, int]:
    if expr.op in BINARY:
        sign, level = BINARY[expr.op]
        if expr.op in ("and", "or"):
            # not T.And: that takes no bool of Python, which is what a comparison of sizes is
            return f" {sign} ".join(_condition(arg, names, level) for arg in expr.args), level
        left, right = (_text(arg, names) for arg in expr.args)
        chained = level == 4  # comparisons do not associate
        first = _inside(left, level + chained)
        second = _inside(right, level + 1)
        return f"{first} {sign} {second}", level
    if expr.op in UNARY:
        return f"{UNARY[expr.op]}{_inside(_text(expr.args[0], names), _UNARY)}", _UNARY
    if expr.op == "not":
        return f"not {_condition(expr.args[0], names, _NOT)}", _NOT
    args = [_text(arg, names)[0] for arg in expr.args]
    if expr.op == "select":
        return f"T.if_then_else({', '.join([truth(expr.args[0], names), *args[1:]])})", _ATOM
    if expr.op == "cast":
        return f'T.cast({args[0]}, "{expr.dtype}")', _ATOM
    return f"T.{expr.op}({', '.join(args)})", _ATOM


def _inside(part: tuple[str, int], level: int) -> str:
    text, own = part
    return text if own >= level else f"({text})"


def number(value: Const) -> tuple[str, int]:
    """A number as text, infinities by the function of TileLang."""
    plain = value.value
    if isinstance(plain, bool):
        return str(plain), _ATOM
    if isinstance(plain, float) and math.isinf(plain):
        text = f'T.infinity("{value.dtype}")'
        return (f"-{text}", _UNARY) if plain < 0 else (text, _ATOM)
    return repr(plain), _ATOM if plain >= 0 else _UNARY
