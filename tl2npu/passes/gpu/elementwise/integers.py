"""Comparisons of integers, and choices between them, where the vector core has instructions for floats only.

float32 holds every integer up to 2**24. Larger ones are compared by a difference, of which only matters whether it is
0: that is right in spite of overflow, and kept by the conversion. Choices are products with 1 and 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.gpu.elementwise.places import Place
from tl2npu.passes.gpu.elementwise.tree import Expr, binary, call, cast, number, show

if TYPE_CHECKING:
    from tl2npu.passes.gpu.elementwise.legality import Legality

_EXACT = 2**24
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


def comparable(lowering: Legality, sign: str, left: Expr, right: Expr, rest: frozenset[str]) -> tuple[str, Expr, Expr]:
    """A comparison of integers as an equal one of float32, ``left`` the side with elements."""
    if is_short(left) or is_short(right):  # rounding the other side keeps the order
        return sign, _as_float(lowering, left), _as_float(lowering, right)
    own = _type(lowering, left, right)
    left, right = lowering.unified(left, own), lowering.unified(right, own)
    if right.kind not in ("load", "number"):
        right = lowering.hoist(right, None, rest | left.buffers)
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
