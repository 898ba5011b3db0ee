"""What element-wise operators of the catalogues compute, as expressions of their parameters, and formulas of functions.

A catalogue says it in one line (``Operator.meaning``), from which everything follows that translates operators: which
operator of another language is the same, and the formula in ``T.Parallel``.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tl2npu.dialects.catalogue import Operator, Role
from tl2npu.dialects.functions import FUNCTIONS
from tl2npu.tile.expr import OPERATORS, Call, Const, Expr, Load, loads, rebuilt
from tl2npu.tile.write.expressions import expression

_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.GtE: "ge",
    ast.USub: "neg",
    ast.Invert: "bitnot",
}


_NUMBERS = {"ln2": math.log(2.0), "ln10": math.log(10.0), "log2e": 1.0 / math.log(2.0), "log10e": 1.0 / math.log(10.0)}


@dataclass(frozen=True)
class Formula:
    """A function of ``x``: each step gives a name, perhaps anew, a value; then ``value`` is the function's."""

    steps: tuple[tuple[str, Expr], ...]
    value: Expr

    def fits(self, *, is_leaf: bool) -> bool:
        """Whether it is one expression that computes its argument once; that of a leaf costs nothing."""
        return not self.steps and (is_leaf or sum(load.buffer == "x" for load in loads(self.value)) == 1)


@cache
def parts_of(function: str) -> Formula | None:
    """The formula of a function, by its name in TileLang; None for one that has none."""
    row = FUNCTIONS.get(function)
    if row is None or not row.formula:
        return None
    *steps, (_, value) = ((name, _of_numbers(text)) for name, text in row.steps)
    return Formula(tuple(steps), value)


def _of_numbers(text: str) -> Expr:
    def part(item: Expr) -> Expr | None:
        if isinstance(item, Const):
            return replace(item, value=float(item.value))
        return Const(_NUMBERS[item.buffer], "") if isinstance(item, Load) and item.buffer in _NUMBERS else None

    return rebuilt(_parsed(text), part)


def meaning(operator: Operator) -> Expr | None:
    """The value of an element of the destination; parameters are loads without index. None: the catalogue says nothing.

    Element types are left open: ``dtype`` is empty, but for a condition that is an operand.
    """
    return _parsed(operator.meaning) if operator.meaning else None


def form(operator: Operator) -> Expr | None:
    """The meaning with operands by number, in the order of the signature: equal forms compute the same.

    The old value of an accumulating destination keeps a name of its own.
    """
    value = meaning(operator)
    if value is None:
        return None
    used = {load.buffer for load in loads(value)}
    operands = [param.name for param in operator.params if param.name in used and param.role is not Role.ACCUMULATE]
    names = {name: str(place) for place, name in enumerate(operands)}

    def numbered(part: Expr) -> Expr | None:
        return replace(part, buffer=names.get(part.buffer, "old")) if isinstance(part, Load) else None

    return rebuilt(value, numbered)


def counterparts(these: Iterable[Operator], those: Iterable[Operator]) -> dict[str, str]:
    """For operators of one language the first one of another that computes just the same, by name."""
    found: dict[Expr, str] = {}
    for operator in those:
        value = form(operator)
        if value is not None and not operator.deviation:
            found.setdefault(value, operator.name)
    pairs = ((operator.name, form(operator)) for operator in these if not operator.deviation)
    return {name: found[value] for name, value in pairs if value is not None and value in found}


def formula(operator: Operator) -> str:
    """The meaning as TileLang text, with ``{name}`` for each parameter; empty where the catalogue says nothing."""
    value = meaning(operator)
    return "" if value is None else expression(rebuilt(value, _in_braces), {})


def _in_braces(part: Expr) -> Expr | None:
    return replace(part, buffer=f"{{{part.buffer}}}") if isinstance(part, Load) else None


@lru_cache(maxsize=256)
def _parsed(text: str) -> Expr:
    return _read(ast.parse(text, mode="eval").body)


def _read(node: ast.expr) -> Expr:
    match node:
        case ast.Name(name):
            return Load(name, (), "")
        case ast.Constant(int() | float() as value):
            return Const(value, "")
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return Const(-value, "")
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]):
            return Call(_SIGNS[type(sign)], (_read(left), _read(right)), "")
        case ast.UnaryOp(sign, operand):
            return Call(_SIGNS[type(sign)], (_read(operand),), "")
        case ast.Call(ast.Name("select"), [ast.Name(condition), *arms]):
            return Call("select", (Load(condition, (), "bool"), *map(_read, arms)), "")
        case ast.Call(ast.Name(name), args) if OPERATORS.get(name) == len(args):
            return Call(name, tuple(map(_read, args)), "")
    raise ValueError(f"no meaning: {ast.unparse(node)}")
