"""Comparisons of integers, and choices between them, where the vector core has instructions for floats only.

float32 holds every integer up to 2**24. Larger ones are compared by a difference, of which only matters whether it is
0: that is right in spite of overflow, and kept by the conversion. Choices are products with 1 and 0.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.gpu.elementwise.places import Place
from tl2npu.passes.gpu.elementwise.tree import FLIPPED, Expr, binary, call, cast, number, show

if TYPE_CHECKING:
    from tl2npu.kernel.symbolic import Sym
    from tl2npu.passes.gpu.elementwise.legality import Legality

_EXACT = 2**24
_OF_SIZES = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_BY_ZERO = {
    "==": ("", "=="),
    "!=": ("", "!="),
    "<=": ("max", "=="),
    ">": ("max", "!="),
    ">=": ("min", "=="),
    "<": ("min", "!="),
}
"""``a <= b`` is ``max(a, b) - b == 0``."""


def is_short(value: Expr) -> bool:
    """Every value that an expression can have is one of float32: of few bits, a loop variable, a small number."""
    if value.kind == "number":
        return value.value is not None and abs(value.value) < _EXACT
    return value.kind == "index" or (value.kind == "load" and element_types.is_exact(value.dtype))


def _is_small(lowering: Legality, value: Expr) -> bool:
    """Every value of a sum of loop variables, sizes and numbers is one of float32."""
    found = _sum(value)
    return found is not None and lowering.reading.is_below(found, _EXACT)


def _sum(value: Expr) -> Sym | None:
    if value.kind != "binary":
        return value.sym
    left, right = map(_sum, value.args)
    combined = _OF_SIZES.get(value.name)
    return None if left is None or right is None or combined is None else combined(left, right)


def comparable(lowering: Legality, sign: str, left: Expr, right: Expr, rest: frozenset[str]) -> tuple[str, Expr, Expr]:
    """A comparison of integers as an equal one of float32, ``left`` the side with elements."""
    if is_short(left) or is_short(right) or _is_small(lowering, left) or _is_small(lowering, right):
        # rounding the other side keeps the order
        return sign, _as_float(lowering, left), _as_float(lowering, right)
    own = _type(lowering, left, right)
    left, right = lowering.unified(left, own), lowering.unified(right, own)
    if right.kind not in ("load", "number"):
        right = lowering.hoist(replace(right, dtype=right.dtype or own), None, rest | left.buffers)
    limit, found = _BY_ZERO[sign]
    if limit:  # in a tile of its own: TVM makes `max(a, b) - b` `max(a - b, 0)`, which may overflow
        left = lowering.hoist(call(limit, left, right), None, rest | right.buffers)
    difference = binary("-", left, right)
    return found, cast("float32", '"float32"', difference), number("0.0")


def choose(lowering: Legality, value: Expr, place: Place, rest: frozenset[str]) -> None:
    """``place = yes if condition else no`` of integers."""
    condition, yes, no = value.args
    text = lowering.temporaries.dtype_text(place.dtype)
    if is_short(yes) and is_short(no):
        arms = [lowering.unified(arm, "float32") for arm in (yes, no)]
        lowering.materialise(cast(place.dtype, text, _select(condition, *arms)), place, rest)
        return
    own = _type(lowering, yes, no)
    yes, no = lowering.unified(yes, own), lowering.unified(no, own)
    chosen = cast(own, f'"{own}"', _select(condition, number("1.0"), number("0.0")))
    mask = lowering.hoist(chosen, None, rest | yes.buffers | no.buffers)
    if no.is_number:
        found = binary("*", mask, yes) if no.value == 0 else binary("+", binary("*", mask, binary("-", yes, no)), no)
    else:
        found = binary("-", no, binary("*", mask, binary("-", no, yes)))
    if own != element_types.plain(place.dtype):
        found = cast(place.dtype, text, found)
    lowering.materialise(found, place, rest)


def choose_number(lowering: Legality, value: Expr, place: Place, rest: frozenset[str]) -> bool:
    """``place = yes if condition else no`` of small numbers by arithmetic; False if it cannot be.

    A comparison takes 64 elements at a time; a vector may be shorter, or of a length that only the call gives.
    """
    condition, yes, no = value.args
    if not (yes.is_number and no.is_number and is_short(yes) and is_short(no) and _of_integers(condition)):
        return False
    apart, mark, holds = _apart(lowering, condition, rest)
    here, there = (yes, no) if holds else (no, yes)
    assert here.value is not None
    assert there.value is not None
    found = _scaled(apart, mark * (here.value - there.value))
    found = binary("+", found, number(str(float(there.value)))) if there.value else found
    text = lowering.temporaries.dtype_text(place.dtype)
    lowering.materialise(found if place.dtype == "float32" else cast(place.dtype, text, found), place, rest)
    return True


def _scaled(value: Expr, factor: float) -> Expr:
    return value if factor == 1 else binary("*", value, number(str(float(factor))))


def _of_integers(condition: Expr) -> bool:
    """Made of comparisons of integers, elements among them."""
    if condition.kind == "logic":
        return all(_of_integers(arg) for arg in condition.args)
    if condition.kind != "compare" or not any(load.axes for load in condition.loads):
        return False
    return element_types.is_integer(element_types.promoted(*(side.dtype for side in condition.args)))


def _apart(lowering: Legality, condition: Expr, rest: frozenset[str]) -> tuple[Expr, int, bool]:
    """A value that is a mark, 1 or -1, where a condition on integers holds (True) or does not (False), and 0 elsewhere.

    A difference of integers is 0, or at least 1.
    """
    if condition.kind == "logic" and condition.name == "not":
        apart, mark, holds = _apart(lowering, condition.args[0], rest)
        return apart, mark, not holds
    if condition.kind == "logic":
        parts = [_apart(lowering, arg, rest | condition.buffers) for arg in condition.args]
        holds = any(sense for *_, sense in parts)
        ones = [
            _scaled(apart, mark) if sense == holds else binary("-", number("1.0"), _scaled(apart, mark))
            for apart, mark, sense in parts
        ]
        return reduce(partial(call, "min" if (condition.name == "and") == holds else "max"), ones), 1, holds
    left, right = condition.args
    sign = condition.name
    if not left.axes:
        left, right, sign = right, left, FLIPPED[sign]
    sign, left, right = comparable(lowering, sign, left, right, rest)
    difference = binary("-", left, right) if right.value != 0 else left
    if sign in ("<", ">="):
        return call("max", call("min", difference, number("0.0")), number("-1.0")), -1, sign == "<"
    above = call("abs", difference) if sign in ("==", "!=") else call("max", difference, number("0.0"))
    return call("min", above, number("1.0")), 1, sign in ("!=", ">")


def _select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    axes = condition.axes | yes.axes | no.axes
    return Expr("select", "", (condition, yes, no), "float32", axes=axes)


def _as_float(lowering: Legality, side: Expr) -> Expr:
    """A side that is computed as integers and converted then."""
    if side.kind in ("load", "number", "index"):
        return lowering.unified(side, "float32")
    return cast("float32", '"float32"', lowering.unified(side, side.dtype or "int32"))


def _type(lowering: Legality, *sides: Expr) -> str:
    """int32, the one type in which large integers are computed."""
    for load in (load for side in sides for load in side.loads):
        if not element_types.is_exact(load.dtype) and element_types.plain(load.dtype) != "int32":
            text = f"`{show(load)}` is {element_types.text_of(load.dtype)}: it is compared as float32, which rounds it"
            raise Blocked("TL762", lowering.stmt.node, text)
    return "int32"
