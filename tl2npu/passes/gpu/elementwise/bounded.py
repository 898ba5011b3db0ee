"""Conditions that bound the columns of a row, as ``j <= bx * M + i and j < length``: one comparison for all of them.

The smallest or largest bound of a row is a number of the scalar unit. A condition on the row alone becomes a bound that
takes all of its columns, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from tl2npu.passes.gpu.elementwise import indices
from tl2npu.passes.gpu.elementwise.tree import FLIPPED, Expr, binary, number, parsed, show

_ONE = number("1")
_OF_INTEGERS = frozenset(("//", "%", "&", "|", "^", "<<", ">>"))
_Test = Callable[[cst.BaseExpression], bool]


@dataclass(frozen=True, eq=False)
class _Bound:
    """``column < value`` or ``column >= value``; without a column, ``value <= 0``."""

    sign: str
    column: Expr | None
    value: Expr


def merged(name: str, parts: list[Expr], extent: str, is_integer: _Test) -> list[Expr]:
    """The operands of ``and`` or ``or`` (``name``) with one comparison of the column for each direction.

    ``extent``: how many columns there are; ``is_integer``: whether a number is made of integers.
    """
    found = [_bound(part, is_integer) for part in parts]
    others = [part for part, bound in zip(parts, found, strict=True) if bound is None]
    bounds = [bound for bound in found if bound is not None]
    comparisons: list[Expr] = []
    rows = [bound.value for bound in bounds if bound.column is None]
    for sign in ("<", ">="):
        mine = [bound for bound in bounds if bound.sign == sign]
        if not mine:
            continue
        least = (name == "and") == (sign == "<")
        values = [show(bound.value) for bound in mine]
        for row in rows:  # at most 0 where it holds
            held = row if sign == ">=" else binary("-", _ONE, row)
            values.append(f"({show(held)}) * {extent}")
        rows = []
        text = values[0]
        for value in values[1:]:
            text = f"T.{'min' if least else 'max'}({text}, {value})"
        bound = Expr("number", text=text, axes=frozenset("r"), dynamic=True, whole=True)
        assert mine[0].column is not None
        comparisons.append(Expr("compare", sign, (mine[0].column, bound), "bool", axes=frozenset("rc")))
    if rows or len(comparisons) == len(bounds):
        return parts
    return [*comparisons, *others]


def is_whole_number(value: Expr, is_integer: _Test) -> bool:
    """Whether it is a whole number that the scalar unit works out from indices."""
    if value.kind == "number":
        return value.whole or is_integer(parsed(value.text))
    if value.kind == "binary" and value.name in _OF_INTEGERS:  # TIR has them for integers only
        kinds = ("index", "number", "binary", "negative")
        return all(part.kind in kinds and part.name != "/" for part in value.walk())
    if value.kind == "negative" or (value.kind == "binary" and value.name in ("+", "-", "*")):
        return all(is_whole_number(part, is_integer) for part in value.args)
    return value.kind == "index"


def _bound(part: Expr, is_integer: _Test) -> _Bound | None:
    if part.kind != "compare" or part.name in ("==", "!="):
        return None
    left, right = part.args
    terms = [*indices.terms(left), *indices.terms(right, -1)]
    if not all(len(term.axes) < 2 and is_whole_number(term, is_integer) for _, term in terms):
        return None
    columns = [(side, term) for side, term in terms if "c" in term.axes]
    if not columns:
        return _Bound("", None, _at_most_zero(part.name, terms))
    if len(columns) > 1 or columns[0][1].kind != "index":
        return None
    ((side, column),) = columns
    sign = part.name if side > 0 else FLIPPED[part.name]
    rest = [(-side * other, term) for other, term in terms if term is not column]
    value = indices.total(rest) if rest else number("0")
    if sign in ("<=", ">"):
        value = binary("+", value, _ONE)
    return _Bound("<" if sign in ("<", "<=") else ">=", column, value)


def _at_most_zero(sign: str, terms: list[tuple[int, Expr]]) -> Expr:
    """A whole number that is 0 or less where ``sum of terms sign 0`` holds, and 1 or more where it does not."""
    turned = [(-side, term) for side, term in terms] if sign in (">", ">=") else terms
    value = indices.total(turned)
    return binary("+", value, _ONE) if sign in ("<", ">") else value
