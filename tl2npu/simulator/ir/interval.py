"""The least and the largest value that an integer expression can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tl2npu.simulator.ir.expr import Binary, Call, Expr, Var, plain
from tl2npu.simulator.ir.linear import linear

Interval = tuple[int, int]


def interval(value: Any, ranges: Mapping[Var, Interval]) -> Interval | None:
    """Both bounds, inclusive, for variables within ``ranges``; None where a part is unknown. Never too narrow."""
    value = plain(value)
    if isinstance(value, int):
        return int(value), int(value)
    if not isinstance(value, Expr):
        return None
    terms, constant = linear(value)
    low = high = constant
    for factor, atom in terms.values():
        found = _atom(atom, ranges)
        if found is None:
            return None
        ends = sorted((factor * found[0], factor * found[1]))
        low, high = low + ends[0], high + ends[1]
    return low, high


def _atom(atom: Expr, ranges: Mapping[Var, Interval]) -> Interval | None:
    if isinstance(atom, Var):
        return ranges.get(atom)
    if isinstance(atom, Binary) and atom.op == "*":
        left, right = interval(atom.left, ranges), interval(atom.right, ranges)
        if left is None or right is None:
            return None
        ends = [a * b for a in left for b in right]
        return min(ends), max(ends)
    if isinstance(atom, Binary) and atom.op in ("//", "%") and isinstance(atom.right, int) and atom.right > 0:
        found = interval(atom.left, ranges)
        if atom.op == "%":
            if found is not None and found[0] >= 0 and found[1] < atom.right:
                return found
            return 0, atom.right - 1
        return None if found is None else (found[0] // atom.right, found[1] // atom.right)
    if isinstance(atom, Call) and atom.name in ("min", "max"):
        sides = [interval(a, ranges) for a in atom.args]
        if any(s is None for s in sides):
            return None
        choose = min if atom.name == "min" else max
        return choose(s[0] for s in sides if s), choose(s[1] for s in sides if s)
    return None
