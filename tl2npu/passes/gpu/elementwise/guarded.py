"""Elements that are read under a condition, and that nothing but the condition keeps inside of their tile.

``o[i, j] = T.if_then_else(j > 0, x[i, j - 1], 0)``: code for whole tiles would read ``x[i, -1]`` as well. Such elements
are read one by one under their condition, into a tile that takes their place in the expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tl2npu.kernel import element_types
from tl2npu.passes.gpu.elementwise.masks import by_elements, is_uniform, opposite
from tl2npu.passes.gpu.elementwise.places import Place
from tl2npu.passes.gpu.elementwise.tree import Expr, joined, number, with_args

if TYPE_CHECKING:
    from tl2npu.passes.gpu.elementwise.legality import Legality

Conditions = tuple[Expr, ...]
_NOTHING: frozenset[str] = frozenset()


def without_guarded_reads(lowering: Legality, value: Expr, place: Place | None) -> Expr | None:
    """The value with tiles in the place of such reads; None if it is stored to the place already."""
    if not _any(lowering, value, ()):
        return value
    if place is not None and value.kind == "select" and place.on_chip and lowering.usable(place):
        condition, *arms = value.args
        plain = all(arm.kind in ("load", "number") and arm.dtype in ("", place.dtype) for arm in arms)
        if plain and place.name not in value.buffers and not _any(lowering, condition, ()):
            by_elements(lowering, value, place, _NOTHING, guarded=True)
            return None
    return _with_tiles(lowering, value, ())


def _needs_condition(lowering: Legality, value: Expr, conditions: Conditions) -> bool:
    return bool(conditions) and value.load is not None and not lowering.reading.lies_inside(value.load)


def _any(lowering: Legality, value: Expr, conditions: Conditions) -> bool:
    """True if a part of a value is read under a condition that it needs."""
    if _needs_condition(lowering, value, conditions):
        return True
    return any(_any(lowering, arg, (*conditions, *more)) for arg, more in _guards(value))


def _with_tiles(lowering: Legality, value: Expr, conditions: Conditions) -> Expr:
    if _needs_condition(lowering, value, conditions):
        return _tile(lowering, value, conditions)
    if not _any(lowering, value, conditions):
        return value
    return with_args(value, *(_with_tiles(lowering, arg, (*conditions, *more)) for arg, more in _guards(value)))


def _tile(lowering: Legality, value: Expr, conditions: Conditions) -> Expr:
    both = conditions[0]
    if len(conditions) > 1:
        both = Expr("logic", "and", conditions, "bool", axes=joined(*conditions))
    tile = lowering.tile_place(lowering.take(value.dtype, value.name), value.dtype)
    zero = number("0.0" if element_types.is_float(value.dtype) else "0")
    choice = Expr("select", "", (both, value, zero), value.dtype, axes=lowering.all_axes())
    by_elements(lowering, choice, tile, _NOTHING, guarded=True)
    return tile.load


def _guards(value: Expr) -> list[tuple[Expr, Conditions]]:
    """The operands of an expression, each with the conditions under which it is asked for."""
    if value.kind == "select":
        condition, yes, no = value.args
        if is_uniform(condition) and value.axes:
            return [(arg, ()) for arg in value.args]  # an ``if`` around all that an arm needs
        return [(condition, ()), (yes, (condition,)), (no, (opposite(condition),))]
    if value.kind == "logic" and value.name in ("and", "or"):
        before = [opposite(arg) for arg in value.args] if value.name == "or" else list(value.args)
        return [(arg, tuple(before[:position])) for position, arg in enumerate(value.args)]
    return [(arg, ()) for arg in value.args]
