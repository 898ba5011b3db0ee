"""Conditions on elements: compare and select on whole tiles (facts 3: gy_cmpsel, gy_cmpcausal).

A condition on indices compares a tile of index differences, made once, with a number: ``bx * M + i >= k * N + j``
becomes ``column_minus_row <= bx * M - k * N``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tl2npu.kernel import element_types
from tl2npu.passes.gpu.elementwise import bounded, indices, integers
from tl2npu.passes.gpu.elementwise.places import Place
from tl2npu.passes.gpu.elementwise.steps import Under
from tl2npu.passes.gpu.elementwise.tree import FLIPPED, Expr, Span, cast, joined, number, show, with_args
from tl2npu.passes.writing.statements import factor

if TYPE_CHECKING:
    from tl2npu.passes.gpu.elementwise.legality import Legality

_MODES = {"==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


_Terms = list[tuple[int, Expr]]
"""Expressions that are added up, each with its sign."""


class _NoTile(Exception):
    """A condition that is no comparison of tiles."""


@dataclass(frozen=True, eq=False)
class _Leaf:
    """One comparison; ``tile`` is compared with ``bound``. ``total``: its opposite is the opposite comparison."""

    tile: str
    sign: str
    bound: str
    total: bool


def select(lowering: Legality, value: Expr, place: Place, rest: frozenset[str]) -> None:
    """``place = yes if condition else no`` for every element."""
    condition, yes, no = value.args
    if is_uniform(condition):
        _under(lowering, value, place, rest)
        return
    parts = _flat(condition) if condition.kind == "logic" else []
    uniform = [part for part in parts if is_uniform(part)]
    if uniform:  # decided once for the tile; where it does not decide, the rest is asked for each element
        others = [part for part in parts if not is_uniform(part)]
        inner = with_args(value, _logic(condition, others), yes, no)
        outer = (inner, no) if condition.name == "and" else (yes, inner)
        _under(lowering, with_args(value, _logic(condition, uniform), *outer), place, rest)
        return
    if lowering.nest.rows is None and not _is_long(lowering, condition):
        if not place.whole or not integers.choose_number(lowering, value, place, rest):
            by_elements(lowering, value, place, rest)
        return
    if not place.whole:
        lowering.through_tile(value, place, rest)
        return
    if element_types.is_integer(place.dtype):
        integers.choose(lowering, value, place, rest)
        return
    if lowering.temporaries.tight and _fill_rows(lowering, value, place, rest):
        return
    start, mark = len(lowering.steps), lowering.temporaries.mark()
    try:
        _Select(lowering, place, rest).all(condition, yes, no)
        lowering.note("TL145")
    except _NoTile:
        del lowering.steps[start:]
        lowering.temporaries.back_to(mark)
        lowering.forget_names()
        by_elements(lowering, value, place, rest)


def _fill_rows(lowering: Legality, value: Expr, place: Place, rest: frozenset[str]) -> bool:
    """Where memory is short, rows that get a number because of their index are filled, without a mask of all."""
    condition, yes, no = value.args
    rows = lowering.nest.rows
    if no.kind == "number":
        condition, yes, no = opposite(condition), no, yes
    indexed = not any(load.axes for load in condition.loads)
    known = all(part.kind in ("compare", "logic", "index", "number", "binary", "negative") for part in condition.walk())
    if rows is None or rows.extent.constant == 1 or condition.axes != frozenset("r") or not (indexed and known):
        return False
    if yes.kind != "number":
        return False
    lowering.materialise(no, place, rest)
    fill = f"T.tile.fill({place.name}[{rows.name}, :], {lowering.scalar(yes, place.dtype)})"
    lowering.line(f"for {rows.name} in T.serial({rows.text}):\n    if {show(condition)}:\n        {fill}")
    lowering.note("TL145")
    return True


def _is_long(lowering: Legality, condition: Expr) -> bool:
    """True for a vector that is worth instructions: a known multiple of 256 bytes, or a product of sizes.

    One value for each row of a tile is often shorter than the 64 elements that a comparison takes at a time. Of a size
    that calls give, conditions on data stay a loop: both vector cores share it, however many elements other calls ask.
    """
    (extent,) = lowering.nest.shape
    if extent.constant is not None:
        return extent.constant % 64 == 0
    products = any(len(monomial) > 1 for monomial, _ in extent.terms)
    return products or (lowering.is_long and not any(True for _ in condition.loads))


def is_uniform(condition: Expr) -> bool:
    """True for a condition that is the same for all elements."""
    return not condition.axes and all(load.span is Span.POINT for load in condition.loads)


def _flat(condition: Expr) -> list[Expr]:
    """The operands of a chain of ``and`` or of ``or``."""
    same = [arg.kind == "logic" and arg.name == condition.name != "not" for arg in condition.args]
    return [part for arg, inner in zip(condition.args, same, strict=True) for part in (_flat(arg) if inner else [arg])]


def _logic(condition: Expr, parts: list[Expr]) -> Expr:
    if len(parts) == 1:
        return parts[0]
    return replace(condition, args=tuple(parts), node=None, axes=joined(*parts))


def _under(lowering: Legality, value: Expr, place: Place, rest: frozenset[str]) -> None:
    condition, yes, no = value.args
    before, parts = lowering.steps, []
    for arm in (yes, no):
        lowering.steps = []
        lowering.forget_names()
        lowering.materialise(arm, place, rest)
        parts.append(tuple(lowering.steps))
    lowering.steps = before
    lowering.forget_names()
    lowering.note("TL147")
    if parts[0]:
        lowering.steps.append(Under(show(condition), parts[0], parts[1], lowering.stmt))
    elif parts[1]:
        lowering.steps.append(Under(f"not ({show(condition)})", parts[1], (), lowering.stmt))


def by_elements(lowering: Legality, value: Expr, place: Place, rest: frozenset[str], *, guarded: bool = False) -> None:
    """An ``if`` statement for every element: slow, but right with one vector core for each block.

    ``guarded``: the arms are elements that may be read under their condition only.
    """
    condition, *arms = value.args
    if not lowering.usable(place) or not place.on_chip:
        lowering.through_tile(value, place, rest)
        return
    condition = _plain(lowering, condition, rest.union(*(arm.buffers for arm in arms)))
    lowering.plain_condition(condition)
    kept = rest | condition.buffers
    shown = []
    for position, arm in enumerate(arms):
        others = kept | (arms[1 - position].buffers if position == 0 else frozenset())
        simple = guarded or arm.kind == "number" or (arm.kind == "load" and arm.span is not Span.OTHER)
        simple = simple or _is_arithmetic_on_indices(arm)
        found = arm if simple else lowering.hoist(arm, None, others)
        shown.append(show(found))
    target = show(place.load)
    if shown[0] == target:
        text = f"if {show(opposite(condition))}:\n    {target} = {shown[1]}"
    else:
        text = f"if {show(condition)}:\n    {target} = {shown[0]}"
        if shown[1] != target:
            text += f"\nelse:\n    {target} = {shown[1]}"
    lowering.slow()
    if any(arm.span is Span.OTHER for arm in arms if guarded):
        lowering.one_by_one(text)
    else:
        lowering.loop_statement(text, "scalar")


def _plain(lowering: Legality, condition: Expr, rest: frozenset[str]) -> Expr:
    """The condition with what only the vector core computes, ``floor(x[i])``, in tiles of its own."""
    if condition.kind not in ("logic", "compare"):
        return condition
    found: list[Expr] = []
    for part in condition.args:
        if condition.kind == "logic":
            found.append(_plain(lowering, part, rest | condition.buffers))
        else:
            computed = part.axes and any(inner.kind in ("call", "select") for inner in part.walk())
            found.append(lowering.hoist(part, None, rest | condition.buffers) if computed else part)
        rest |= found[-1].buffers
    return with_args(condition, *found)


def _is_arithmetic_on_indices(value: Expr) -> bool:
    """A value that the scalar unit works out from indices, as the condition."""
    parts = list(value.walk())
    kinds = ("index", "number", "unknown", "binary", "negative", "cast")
    return any(part.axes for part in parts) and all(
        part.kind in kinds and part.load is None and (not part.dtype or element_types.is_integer(part.dtype))
        for part in parts
    )


def opposite(condition: Expr) -> Expr:
    """The condition that holds where this one does not."""
    if condition.kind == "logic" and condition.name == "not":
        return condition.args[0]
    if condition.kind == "compare" and not any(True for _ in condition.loads):
        left, right = condition.args
        return Expr("compare", _OPPOSITE[condition.name], (left, right), "bool", axes=condition.axes)
    return Expr("logic", "not", (condition,), "bool", axes=condition.axes)


class _Select:
    """Builds compare and select statements."""

    def __init__(self, lowering: Legality, place: Place, rest: frozenset[str]) -> None:
        self.lowering = lowering
        self.place = place
        self.rest = rest
        self.is_free = False
        self.spare = ""

    def all(self, condition: Expr, yes: Expr, no: Expr) -> None:
        """Select into the place."""
        condition = self.merged(condition)
        read = condition.buffers
        first = self.operand(yes, self.rest | no.buffers | read)
        held = frozenset() if isinstance(first, Expr) else frozenset({first})
        second = self.operand(no, self.rest | held | read)
        numbers = isinstance(first, Expr) and isinstance(second, Expr)
        self.is_free = numbers and condition.kind == "compare" and self.place.name not in self.rest
        self.choose(condition, first, second, self.place.name)

    def has_rows(self) -> bool:
        """Whether the number of a row is one that runs: the compiler writes that of a single one, and a minus before it
        (TL749)."""
        rows = self.lowering.nest.rows
        return rows is not None and rows.extent.constant != 1

    def merged(self, condition: Expr) -> Expr:
        """The condition with fewer comparisons, where each would make a tile of indices of its own."""
        nest = self.lowering.nest
        if condition.kind != "logic" or not self.lowering.temporaries.tight or not self.has_rows():
            return condition
        if condition.name == "not":
            return with_args(condition, self.merged(condition.args[0]))
        parts = [self.merged(part) for part in _flat(condition)]
        extent = factor(nest.columns.text)
        return _logic(condition, bounded.merged(condition.name, parts, extent, self.lowering.reading.is_integer))

    def operand(self, value: Expr, rest: frozenset[str]) -> Expr | str:
        """A number, or the name of a tile."""
        if value.kind == "number":
            return self.lowering.legal_number(value, self.place.dtype)
        return self.lowering.tile_operand(value, self.place, rest)

    def choose(self, condition: Expr, yes: Expr | str, no: Expr | str, out: str, opposite: bool = False) -> None:
        """``out = yes where the condition holds, else no``; with ``opposite``: where it does not."""
        if condition.kind == "logic" and condition.name == "not":
            self.choose(condition.args[0], yes, no, out, not opposite)
            return
        if condition.kind == "logic":
            self.several(condition, yes, no, out, opposite)
            return
        if condition.kind != "compare":
            raise _NoTile
        self.check_size()
        leaf = self.leaf(condition)
        mask = self.mask(leaf, opposite, yes, no)
        self.lowering.temporaries.give_back(self.spare)
        self.spare = ""
        self.one(yes, no, out, mask)
        self.lowering.temporaries.give_back(mask[0])

    def check_size(self) -> None:
        """A comparison takes multiples of 256 bytes."""
        count = 1
        for extent in self.lowering.nest.shape:
            if extent.constant is None:
                return
            count *= extent.constant
        if count * 2 % 256:
            raise _NoTile

    def several(self, condition: Expr, yes: Expr | str, no: Expr | str, out: str, opposite: bool) -> None:
        """and, or: one after the other."""
        first, rest = condition.args[0], condition.args[1:]
        second = rest[0] if len(rest) == 1 else Expr("logic", condition.name, rest, "bool", axes=condition.axes)
        both = (condition.name == "and") != opposite
        kept = no if both else yes
        inner = out if out not in (kept, *first.buffers) else self.take()
        self.choose(second, yes, no, inner, opposite)
        if both:
            self.choose(first, inner, no, out, opposite)
        else:
            self.choose(first, yes, inner, out, opposite)

    def take(self) -> str:
        return self.lowering.take(self.place.dtype, self.place.name)

    def mask(self, leaf: _Leaf, opposite: bool, yes: Expr | str, no: Expr | str) -> tuple[str, bool]:
        """The comparison; whether its sense is that of the opposite arms."""
        turned = opposite
        swap = isinstance(yes, Expr) and not isinstance(no, Expr)
        sign, swapped = leaf.sign, False
        if turned and leaf.total:
            sign, turned = _OPPOSITE[sign], False
        if turned:
            swapped = True
        if swap and leaf.total and not swapped:
            sign, swapped = _OPPOSITE[sign], True
        extents = self.lowering.nest.extents
        size = " * ".join(factor(extent) for extent in extents if extent != "1") or "1"
        name = self.lowering.temporaries.tile((f"{size} // 8",), "uint8", "mask", bare=True)
        self.lowering.line(f'T.tile.compare({name}, {leaf.tile}, {leaf.bound}, "{_MODES[sign]}")')
        return name, swapped

    def one(self, yes: Expr | str, no: Expr | str, out: str, mask: tuple[str, bool]) -> None:
        """One select; its first operand has to be a tile."""
        name, swapped = mask
        if swapped:
            yes, no = no, yes
        dtype = self.place.dtype
        if isinstance(yes, Expr):
            where = out if out != no else self.take()
            self.lowering.line(f"T.tile.fill({where}, {self.lowering.scalar(yes, dtype)})")
            yes = where
        if isinstance(no, Expr):
            bound = self.lowering.scalar(no, dtype)
            mode = "VSEL_TENSOR_SCALAR_MODE"
        else:
            bound, mode = no, "VSEL_TENSOR_TENSOR_MODE"
        self.lowering.line(f'T.tile.select({out}, {name}, {yes}, {bound}, "{mode}")')

    # -- comparisons ------------------------------------------------------------------------------------------------

    def leaf(self, condition: Expr) -> _Leaf:
        """A comparison as one of a tile with a number or with another tile."""
        left, right = condition.args
        if any(load.axes for load in condition.loads) or any(
            part.kind in ("call", "cast", "select") for part in condition.walk()
        ):
            return self.of_data(condition.name, left, right)
        return self.of_indices(condition.name, left, right)

    def of_data(self, sign: str, left: Expr, right: Expr) -> _Leaf:
        if not left.axes:
            left, right, sign = right, left, FLIPPED[sign]
        dtype = element_types.promoted(left.dtype, right.dtype)
        total = element_types.is_integer(dtype)
        if total:
            kept = self.rest | left.buffers | right.buffers | {self.place.name}
            sign, left, right = integers.comparable(self.lowering, sign, left, right, kept)
            dtype = "float32"
        left, right = self.as_data(left, dtype), self.as_data(right, dtype)
        free = self.is_free and self.place.dtype == dtype
        kept = self.rest | right.buffers | (frozenset() if free else {self.place.name})
        tile = self.lowering.tile_operand(left, self.place if free else None, kept)
        if right.kind == "number":
            return _Leaf(tile, sign, self.lowering.scalar(right, dtype), total)
        return _Leaf(tile, sign, self.lowering.tile_operand(right, None, kept | {tile, self.place.name}), total)

    def as_data(self, side: Expr, dtype: str) -> Expr:
        """Arithmetic on indices in the type of what it is compared with: exact, then rounded once as on a GPU."""
        if side.kind == "number" or side.dtype or dtype in ("", "float32"):
            return side
        return cast(dtype, self.lowering.temporaries.dtype_text(dtype), replace(side, dtype="float32"))

    def of_indices(self, sign: str, left: Expr, right: Expr) -> _Leaf:
        terms = [*indices.terms(left, 1), *indices.terms(right, -1)]
        parts: dict[str, _Terms] = {"c": [], "r": [], "": []}
        for side, term in terms:
            if len(term.axes) > 1 or term.kind == "unknown":
                raise _NoTile
            parts[next(iter(term.axes), "")].append((side, term))
        columns, rows, fixed = parts["c"], parts["r"], parts[""]
        if not columns and not rows:
            raise _NoTile
        if (columns or rows)[0][0] < 0:
            columns, rows, fixed = ([(-side, term) for side, term in part] for part in (columns, rows, fixed))
            sign = FLIPPED[sign]
        nest, temporaries = self.lowering.nest, self.lowering.temporaries
        plain = all(len(part) < 2 and all(term.kind == "index" for _, term in part) for part in (columns, rows))
        if not plain and not self.has_rows():
            raise _NoTile
        if nest.rows is not None and (temporaries.tight or not plain):
            return self.of_rows(sign, columns, rows, fixed)
        extents = nest.extents
        if nest.rows is None:
            made = indices.vector(temporaries, (extents[0],), "float32")
        else:
            kind = "r" if not columns else "c" if not rows else "+" if rows[0][0] > 0 else "-"
            made = indices.tile(temporaries, (extents[0], extents[1]), kind)
        return _Leaf(made, sign, _bound(fixed), True)

    def of_rows(self, sign: str, columns: _Terms, rows: _Terms, fixed: _Terms) -> _Leaf:
        """``i // block >= j // block``: the values along the columns are a vector, that of a row is a number."""
        is_integer = self.lowering.reading.is_integer
        if not all(bounded.is_whole_number(term, is_integer) for _, term in (*columns, *rows)):
            raise _NoTile
        nest, vector, before = self.lowering.nest, "", ""
        if columns:
            along = indices.total(columns)
            plain = along.kind == "index"
            vector = (
                indices.index_vector(self.lowering, along, "float32").name
                if plain
                else indices.values(self.lowering, along)
            )
        if self.is_free and self.place.dtype == "float32":
            name = self.place.name  # it is written anyway
        else:
            name = self.spare = self.lowering.temporaries.tile(nest.extents, "float32", "index_tile", bare=True)
        number = "0.0"
        if rows:
            value = indices.total([(-side, term) for side, term in rows] if columns else rows)
            number = show(value)
            if value.is_number:  # made of several conditions
                bound = self.lowering.temporaries.fresh("column_bound")
                number, before = bound, f"{bound} = {number}"
            number = f"T.float32({number})"
        self.lowering.line(indices.rows_of(name, nest.names[0], nest.extents[0], vector, number, before=before))
        return _Leaf(name, sign, _bound(fixed), True)


def _bound(fixed: _Terms) -> str:
    """The text of minus the sum of the terms as a float32."""
    text = indices.bound(fixed)
    if not text:
        return "0.0"
    value = number(text).value
    return f"{value:.1f}" if value is not None else f"T.float32({text})"
