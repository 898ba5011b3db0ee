"""Conditions as terms: one form for the ways to spell a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from tl2npu.kernel.symbolic import Opaque, Sym, opaque
from tl2npu.source.signs import COMPUTED, sign_of

_MIRRORED = {
    "Equal": "Equal",
    "NotEqual": "NotEqual",
    "LessThan": "GreaterThan",
    "LessThanEqual": "GreaterThanEqual",
    "GreaterThan": "LessThan",
    "GreaterThanEqual": "LessThanEqual",
}
OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    name: COMPUTED[sign_of(getattr(cst, name)())] for name in _MIRRORED
}
"""What a comparison asks, by the name of its operator."""
_OPPOSITE = {"Equal": "NotEqual", "NotEqual": "Equal"}


def compared(head: str, left: Sym, right: Sym) -> Sym:
    """A comparison, by the name of its operator: a number stands on its right, `0 == k` is `k == 0`."""
    if left.constant is not None and right.constant is None and head in _MIRRORED:
        return opaque(_MIRRORED[head], right, left)
    return opaque(head, left, right)


def negated(condition: Sym) -> Sym:
    """``not condition``: of an equation that it does not hold. Other comparisons have no opposite, for NaN."""
    atom = condition.atom
    if isinstance(atom, Opaque) and atom.head in _OPPOSITE and len(atom.args) == 2:
        return opaque(_OPPOSITE[atom.head], *atom.args)
    return opaque("Not", condition)


def at_most(condition: Sym) -> tuple[Sym, Sym] | None:
    """The two sides of a condition that says ``left <= right``, however it is spelled; None for any other."""
    atom = condition.atom
    if not isinstance(atom, Opaque) or len(atom.args) != 2:
        return None
    left, right = atom.args
    if atom.head in ("GreaterThan", "GreaterThanEqual"):
        left, right = right, left
    elif atom.head not in ("LessThan", "LessThanEqual"):
        return None
    return (left, right - 1) if atom.head in ("LessThan", "GreaterThan") else (left, right)


def is_all_but_last(condition: Sym, variable: Sym, extent: Sym) -> bool:
    """``k < extent - 1`` and its likes: true in every turn of a loop but the last."""
    sides = at_most(condition)
    if isinstance(condition.atom, Opaque) and condition.atom.head == "NotEqual":
        left, right = condition.atom.args
        sides = (left, right - 1) if left.depends_on(str(variable)) else (right, left - 1)
    return sides is not None and sides[1] - sides[0] == extent - 2 - variable  # it says k + 1 <= extent - 1
