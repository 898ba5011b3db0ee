"""Masks as bounds: a conjunction of ``value > 0`` conditions on integers, and what is left over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from tl2npu.kernel.symbolic import Opaque, Sym, opaque
from tl2npu.tile.expr import Call, Const, Expr, Index, axis_of
from tl2npu.triton.read.ranges import WITHIN


def conjuncts(mask: Expr) -> Iterator[Expr]:
    """The parts of which all must hold."""
    if isinstance(mask, Call) and mask.op == "and":
        for arg in mask.args:
            yield from conjuncts(arg)
    elif not (isinstance(mask, Const) and mask.value is True):
        yield mask


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """The condition that all hold; there is at least one."""
    return reduce(lambda found, more: Call("and", (found, more), "bool"), conditions)


def separated(condition: Expr, lets: Mapping[str, Sym]) -> Iterator[Expr]:
    """``x < min(a, b)`` as ``x < a`` and ``x < b``, also where the smaller of the two has a name.

    ``lets``: what the names of integers stand for.
    """
    value = positive(condition)
    if value is None:
        yield condition
        return
    ends = {name: end for name, end in lets.items() if _ENDS & {a.head for a in end.atoms() if isinstance(a, Opaque)}}
    while not value.names.isdisjoint(ends):
        value = value.substitute(ends)
    for mono, coef in value.terms:
        atom = mono[0] if len(mono) == 1 else None
        if isinstance(atom, Opaque) and atom.head == ("min" if coef > 0 else "max"):
            rest = value - Sym.of({mono: coef})
            for arg in atom.args:
                yield from separated(_is_positive(rest + arg * coef), lets)
            return
    yield condition if positive(condition) == value else _is_positive(value)


_ENDS = {"min", "max"}


def _is_positive(value: Sym) -> Expr:
    """``value > 0``, with the place of the element on the left of ``<``."""
    place = {name: 0 for name in value.names if axis_of(name) is not None}
    end = value.substitute(place)
    return Call("lt", (Index(end - value), Index(end)), "bool")


def positive(condition: Expr) -> Sym | None:
    """The integer that is greater than 0 exactly where an inequality of integers holds; None for other conditions."""
    if not isinstance(condition, Call) or condition.op not in ("lt", "le", "gt", "ge"):
        return None
    one, other = (_integer(arg) for arg in condition.args)
    if one is None or other is None:
        return None
    match condition.op:
        case "lt":
            return other - one
        case "le":
            return other - one + 1
        case "gt":
            return one - other
        case _:
            return one - other + 1


def within(expr: Expr) -> Sym | None:
    """``where(x < n, x, 0)`` as one integer; None for any other expression."""
    if not isinstance(expr, Call) or expr.op != "select" or not isinstance(expr.args[0], Call):
        return None
    more, value, other = positive(expr.args[0]), _integer(expr.args[1]), _integer(expr.args[2])
    if more is None or value is None or other is None or not other.is_zero:
        return None
    end = more + value
    return None if any(axis_of(name) is not None for name in end.names) else opaque(WITHIN, value, end)


def _integer(expr: Expr) -> Sym | None:
    if isinstance(expr, Index):
        return expr.value
    if isinstance(expr, Const) and isinstance(expr.value, int):
        return Sym.of({(): int(expr.value)})
    return None


Facts = dict[Sym | Expr, bool]
"""Conditions that hold or do not, an inequality of integers as what is greater than 0 then."""


def told(condition: Expr, holds: bool) -> Facts:
    """What a condition says if it holds, or if it does not."""
    if isinstance(condition, Call) and condition.op == "not":
        return told(condition.args[0], not holds)
    if isinstance(condition, Call) and condition.op == ("and" if holds else "or"):
        return {**told(condition.args[0], holds), **told(condition.args[1], holds)}
    value = positive(condition)
    return {condition: holds} if value is None else {value: holds, 1 - value: not holds}


def known(condition: Expr, facts: Facts) -> bool | None:
    """Whether a condition holds, by what is known of it alone."""
    if isinstance(condition, Call) and condition.op == "not":
        found = known(condition.args[0], facts)
        return None if found is None else not found
    value = positive(condition)
    return facts.get(condition if value is None else value)
