"""Expressions as the right side of a statement in ``T.Parallel``; what cannot stand there is computed before."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from tl2npu.dialects.functions import ASCEND_LOOPS
from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Store
from tl2npu.passes.gpu.elementwise import masks
from tl2npu.passes.gpu.elementwise.body import Put
from tl2npu.passes.gpu.elementwise.indices import both, index_vector
from tl2npu.passes.gpu.elementwise.instructions import Instructions
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.places import Place
from tl2npu.passes.gpu.elementwise.reading import OWN
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, binary, number, same, show, with_args, with_part
from tl2npu.passes.gpu.elementwise.work import is_flat, is_source

_SIGNS = frozenset("+-*/")
_ROWS, _COLUMNS = frozenset("r"), frozenset("c")
_NOTHING: frozenset[str] = frozenset()


class Legality(Instructions):
    """Sums, products and what stands in them."""

    def materialise(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None = None) -> None:
        """Compute a value into a place. ``rest``: buffers that must keep what they hold."""
        if value.kind == "load":
            self.move(value, place, item)
        elif value.kind == "number":
            self.fill(value, place, item)
        elif value.kind == "index":
            self.move(index_vector(self, value, place.dtype), place, None)
        elif value.kind == "cast" and (vector := self.picked(value)) is not None:
            self.move(vector, place, item)  # converted before it is spread
        elif value.kind == "cast":
            self.convert(value, place, rest)
        elif value.kind == "select":
            masks.select(self, value, place, rest)
        elif value.kind == "call":
            self.function(value, place, rest, item)
        elif value.kind in ("binary", "negative"):
            self.arithmetic(value, place, rest, item)
        else:
            self.refuse(value)

    def arithmetic(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """Sums and products: one statement, after what it needs."""
        scratch = place if self.usable(place) else None
        if value.kind == "binary" and (
            value.name not in _SIGNS or (value.name == "/" and element_types.is_integer(value.dtype))
        ):
            self.integers(value, place, rest, item)
            return
        found = self.spread_out(self.legal(value, scratch, rest), place, rest)
        if found.kind == "load":
            self.move(found, place, item)
            return
        rows = self.form(found) == "rows"
        if rows:
            found = self.two_dimensional(found)
        if not self.usable(place) or (rows and not self.takes_rows(place)):
            self.through_tile(found, place, rest)
            return
        found = self.apart(found, place, rest)
        self.emit(place, found, is_source(found, item), item)

    def integers(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """Integer division and the like: a loop over the elements (facts 3: g3_i32div)."""
        for part in value.walk():
            if part.kind in ("call", "select", "unknown") or part.span is Span.OTHER:
                raise Blocked("TL151", self.stmt.node, f"`{show(part)}` in integer arithmetic cannot be vectorised")
            if part.kind == "binary" and part.name in ("&", "|", "^", "<<", ">>", "?"):
                raise Blocked("TL151", self.stmt.node, f"the compiler does not support `{show(part)}`")
        if not self.usable(place) or not place.on_chip:
            self.through_tile(value, place, rest)
            return
        self.slow()
        kept = is_source(value, item) and isinstance(self.stmt, Store)
        text = code(self.stmt.node) if kept else f"{show(place.load)} = {show(value)}"
        self.loop_statement(text, "scalar", kept)

    def apart(self, value: Expr, place: Place, rest: frozenset[str]) -> Expr:
        """The last of the statements for ``place = value``: only those with a vector run row by row.

        In one statement, each instruction would start once for every row. Where memory is short, every step is stored
        to the place, or nothing is taken apart: the compiler needs a tile for each inner value of a statement.
        """
        rows, tight = self.nest.rows, self.temporaries.tight
        if rows is None or rows.extent.constant == 1 or not value.args:
            return value
        if not self.is_in_place(value, place, rest) if tight else self.form(value) != "rows":
            return value
        args, by = list(value.args), _by(value)
        for position, arg in enumerate(value.args):
            twin = next((new for old, new in zip(value.args[:position], args, strict=False) if same(old, arg)), None)
            others = rest.union(*(other.buffers for other in args if other is not arg and not same(other, arg)))
            found = twin or self.apart(arg, place, others)
            if not _is_leaf_or_vector(found) and (_by(found) != by or by == {Span.POINT} or (tight and not by)):
                where = self.spare(found, others) or self.scratch(place, others, found.dtype)
                self.emit(where, found)
                found = where.load
            args[position] = found
        return with_args(value, *args)

    def spare(self, value: Expr, rest: frozenset[str]) -> Place | None:
        """A temporary tile that nothing but the value reads."""
        for load in value.loads:
            fits = load.span is Span.TILE and load.dtype == value.dtype
            if fits and load.name not in rest and self.temporaries.lends(load.name):
                return self.tile_place(load.name, load.dtype)
        return None

    def is_in_place(self, value: Expr, place: Place, rest: frozenset[str]) -> bool:
        """Whether every step of a value can be stored to the place: ``((x op a) op b) op c``."""
        right = value
        kept = set(rest)
        while right.kind == "binary":
            kept |= right.args[1].buffers
            if right.args[1].args:
                return False
            right = right.args[0]
        return not right.args and place.whole and place.name not in kept and value.dtype in ("", place.dtype)

    def two_dimensional(self, value: Expr) -> Expr:
        """Beside a vector only tiles with two axes are read row by row; others are copied into one."""
        for load in value.loads:
            if load.span is Span.TILE and load.load is not None and len(load.load.dims or ()) > 2:
                tile = self.tile_place(self.take(load.dtype, load.name), load.dtype)
                self.copy(self.region(load), tile.region)
                value = with_part(value, load, tile.load)
        return value

    def legal(self, value: Expr, place: Place | None, rest: frozenset[str], dtype: str = "") -> Expr:
        """The value as the right side of a statement in the loop; what cannot stand there is computed before.

        ``dtype`` is the type of the arithmetic that it is part of.
        """
        if value.kind == "load":
            return self.legal_load(value, place, rest)
        if value.kind == "number":
            return self.legal_number(value, dtype)
        own = dtype or (place.dtype if place is not None else "")
        if value.kind != "index" and not value.dtype and element_types.is_integer(own):
            value = replace(value, dtype=own)  # of indices only: a float32 would not hold what is added to them
        if value.kind == "index":
            return index_vector(self, value, place.dtype if place is not None else "float32")
        if len(value.axes) == 2 and place is not None and place.dtype == "float32":
            difference = both(self, value)
            if difference is not None:
                return self.legal(difference, place, rest, dtype)
        if "c" not in value.axes and value.kind in ("binary", "negative", "call", "cast", "select"):
            if not value.axes:
                return self.point_value(value, place, rest)
            return self.single_row(value, place, rest) if self.is_single_row(value) else self.row_value(value)
        if self.is_worth_a_vector(value):
            return self.column_value(value)
        if value.kind == "negative":
            return with_args(value, self.legal(value.args[0], place, rest, dtype))
        if value.kind == "binary":
            return self.legal_binary(value, place, rest)
        if value.kind == "call" and value.name in ASCEND_LOOPS and self.is_element(value.args[0]) and not self.single:
            return value
        if value.kind == "call" and value.name in ("max", "min") and self.limits_in_loop(value):
            return self.legal_pair(value, place, rest)
        if value.kind == "unknown":
            self.refuse(value)
        if value.kind == "call":
            self.note("TL140")
        return self.hoist(value, place, rest)

    def legal_load(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        if value.span is Span.PART:
            self.note("TL148")
            return self.hoist(value, place, rest)
        if value.span is Span.OTHER:
            vector = self.picked(value)
            return vector if vector is not None else self.hoist(value, place, rest)
        return value

    def legal_number(self, value: Expr, dtype: str) -> Expr:
        """A number that the kernel computes needs a name (facts 3: g3b_gmscalar, gy_var).

        An integer or a narrower float beside elements of a float type ``dtype`` must be one too, by name: else the
        loop runs element by element, has no functions, and a tile that has just come from the cube core is loaded again
        for each of them (facts 2: g2_rowloop_inpl; facts 10).
        """
        converted = value.name == "integer" and self.reading.is_float(dtype)
        if dtype == "float32" and value.dynamic and not converted:
            converted = value.name == OWN or self.reading.float_type(show(value)) not in ("", dtype)
        if not value.dynamic or value.value is not None or (value.text.isidentifier() and not converted):
            return value
        text = f"T.float32({show(value)})" if converted else show(value)
        if text not in self._bound:
            name = self.temporaries.fresh(_name_for(value.text))
            self.line(f"{name} = {text}")
            self._bound[text] = number(name, dynamic=True)
        return self._bound[text]

    def legal_binary(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        if value.name not in _SIGNS or (value.name == "/" and element_types.is_integer(value.dtype)):
            return self.hoist(value, None, rest)
        left, right = value.args
        if self.is_reciprocal(value, place):
            dtype = right.dtype or value.dtype or (place.dtype if place is not None else "float32")
            right = self.divisors(replace(right, dtype=dtype), rest | left.buffers)
            return self.legal_pair(with_args(value, left, right), place, rest)
        if "c" not in left.axes:  # a number or a row vector on the left is misread (facts 3: g3_rowdiv, g3_sleft)
            self.note("TL141")
            left = self.hoist(replace(left, dtype=left.dtype or value.dtype), place, rest | right.buffers)
            return with_args(value, left, self.legal(right, place, rest | left.buffers, value.dtype))
        return self.legal_pair(value, place, rest)

    def divisors(self, value: Expr, rest: frozenset[str]) -> Expr:
        """A value of the row in every column of a tile. One times it keeps the sign of a zero, 0 plus it does not."""
        self.note("TL157")
        if value.kind != "load" or (value.span is Span.ROW and self.is_spread(value)):
            return self.hoist(value, None, rest)
        tile = self.tile_place(self.take(value.dtype, self.wish()), value.dtype)
        self.fill(number("1.0"), tile, None)
        self.emit(tile, binary("*", tile.load, value))
        return tile.load

    def is_reciprocal(self, value: Expr, place: Place | None) -> bool:
        """A quotient by a value of the row that must not become a product with the reciprocal (codegen_ascend.cc).

        In float16 that is infinite below 1.5e-5; a value that is rounded next may come to another whole number.
        """
        left, right = value.args
        if value.name != "/" or "c" in right.axes or "c" not in left.axes or right.kind == "number":
            return False
        dtype = value.dtype or (place.dtype if place is not None else "")
        return self.exactly or self.is_half(dtype)

    def legal_pair(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        left, right = value.args
        dtype = value.dtype or (place.dtype if place is not None else "float32")
        if value.name in ("+", "-") and element_types.is_integer(dtype):
            left, right = self.limit_apart(left, rest | right.buffers), self.limit_apart(right, rest | left.buffers)
        left = self.legal(left, place, rest | right.buffers, dtype)
        return with_args(value, left, self.legal(right, place, rest | left.buffers, dtype))

    def limit_apart(self, value: Expr, rest: frozenset[str]) -> Expr:
        """A maximum in a tile of its own: TVM makes ``max(a, b) - b`` of integers ``max(a - b, 0)``."""
        is_limit = value.kind == "call" and value.name in ("max", "min") and value.axes
        return self.hoist(value, None, rest) if is_limit else value

    def row_value(self, value: Expr) -> Expr:
        """A value for each row that is more than an element: into a vector, in a loop over the rows."""
        rows = self.nest.rows
        assert rows is not None
        self.note("TL141")
        dtype = value.dtype or "float32"
        name = self.vector(rows.text, value, dtype, "rows")
        self.along(rows_only(self.nest), value, name, dtype)
        return Expr("load", name, (), dtype, text=f"{name}[{rows.name}]", span=Span.ROW, axes=_ROWS)

    def picked(self, value: Expr) -> Expr | None:
        """Elements in another order that change along one of two axes only: once, into a vector."""
        if self.nest.rows is None or len(value.axes) != 1:
            return None
        return self.row_value(value) if value.axes == _ROWS else self.column_value(value)

    def is_single_row(self, value: Expr) -> bool:
        """A function of the only row: a loop over one row is none, and the compiler has no functions of scalars."""
        rows = self.nest.rows
        single = rows is not None and rows.extent.constant == 1
        return single and any(part.kind == "call" for part in value.walk())

    def single_row(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        """The value of the only row, computed in every column; its number is 0."""
        given = value
        for part in list(value.walk()):
            if part.kind == "index":
                value = with_part(value, part, replace(number("0"), name="integer"))
        for load in list(value.loads):
            if load.span is Span.ROW:
                others = frozenset(item.name for item in value.loads if item is not load)
                value, place = with_part(value, load, self.hoist(load, place, rest | others)), None
        if value is given:
            self.refuse(value)
        return self.legal(value, place, rest)

    def is_worth_a_vector(self, value: Expr) -> bool:
        """A value for each column that no instruction of the loop computes, or several would in every row."""
        if self.nest.rows is None or value.axes != _COLUMNS:
            return False
        if value.kind in ("binary", "negative"):
            return all(map(is_flat, value.loads)) and self.nest.rows.extent.constant != 1
        if value.kind not in ("call", "cast", "select"):
            return False
        return not (value.kind == "call" and value.name in ASCEND_LOOPS and self.is_element(value.args[0]))

    def column_value(self, value: Expr) -> Expr:
        """A value for each column that is more than an element: into a vector, once for all rows."""
        columns = self.nest.columns
        self.note({"cast": "TL144", "binary": "TL158", "negative": "TL158"}.get(value.kind, "TL140"))
        dtype = value.dtype or "float32"
        name = self.vector(columns.text, value, dtype, "columns")
        self.along(replace(self.nest, rows=None), value, name, dtype)
        return Expr("load", name, (), dtype, text=f"{name}[{columns.name}]", span=Span.COLUMN, axes=_COLUMNS)

    def vector(self, extent: str, value: Expr, dtype: str, wish: str) -> str:
        """The tile of a vector; the conversion of a vector has one of its own, which may be of use again."""
        stem = next((load.name for load in value.loads), wish)
        if self.temporaries.tight or value.kind != "cast" or not is_flat(value.args[0]):
            return self.temporaries.tile((extent,), dtype, stem)
        key = ("converted", show(value.args[0]), dtype, extent)
        if key not in self.temporaries.shared:
            self.temporaries.shared[key] = self.temporaries.tile((extent,), dtype, f"{stem}_tmp", keep=True)
        return self.temporaries.shared[key]

    def along(self, nest: Nest, value: Expr, name: str, dtype: str) -> None:
        """Compute a value that changes along one axis only, in a loop over that axis."""
        inner = type(self)(nest, self.reading, self.temporaries, self.algebra)
        inner.slowly, inner.unrounded, inner.exactly = self.slowly, self.unrounded, self.exactly
        inner.stmt, inner.steps, inner.codes, inner.stem = self.stmt, self.steps, self.codes, self.stem
        place = inner.tile_place(name, dtype)
        inner.materialise(as_columns(value, nest.columns.var), place, _NOTHING)

    def point_value(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        """A value that is the same for all elements but is computed from elements of tiles."""
        leaf = next((part for part in value.walk() if part.kind == "load"), None)
        leaf = leaf or next((part for part in value.walk() if part.kind == "number"), None)
        if leaf is None or any(load.span is not Span.POINT for load in value.loads):
            self.refuse(value)
        assert leaf is not None
        others = frozenset(load.name for load in value.loads if load is not leaf)
        start = replace(leaf, dtype=leaf.dtype or value.dtype or (place.dtype if place is not None else "float32"))
        found = with_part(value, leaf, self.hoist(start, place, rest | others))
        return self.legal(found, place, rest)

    def spread_out(self, value: Expr, place: Place, rest: frozenset[str]) -> Expr:
        """Without a tile in it an expression may hold one vector only: the first one is spread before."""
        if self.nest.rows is None:
            return value
        loads = list(value.loads)
        if len(loads) < 2 or any(load.span is Span.TILE for load in loads):
            return value
        # beside a vector of the columns no number is read in every row
        first = next((load for span in (Span.ROW, Span.COLUMN) for load in loads if load.span is span), None)
        if first is None:
            return value
        others = frozenset(load.name for load in loads if load is not first)
        tile = self.hoist(first, place if place.whole else None, rest | others)
        return with_part(value, first, tile)


def _by(value: Expr) -> frozenset[Span]:
    """Which operands make an operation one for each row: vectors, or a single element."""
    if any(arg.span in (Span.ROW, Span.COLUMN) or _of_vectors(arg) for arg in value.args):
        return frozenset({Span.ROW})
    return frozenset({Span.POINT}.intersection(arg.span for arg in value.args if arg.span is not None))


def _is_leaf_or_vector(value: Expr) -> bool:
    """An operand that takes no statement of its own: an element or a number, or a value of vectors."""
    return not value.args or _of_vectors(value)


def _of_vectors(value: Expr) -> bool:
    """An operation on elements of vectors, not of tiles."""
    return bool(value.args) and Span.TILE not in {load.span for load in value.loads}


def rows_only(nest: Nest) -> Nest:
    """The loop over the rows of a nest, as a nest over one axis."""
    assert nest.rows is not None
    return replace(nest, rows=None, columns=nest.rows)


def as_columns(value: Expr, variable: str) -> Expr:
    """A value of a row as one of a loop over the rows only; a column of a tile does not lie in a row."""
    dims = value.load.dims if value.load is not None else None
    lies = not dims or dims[-1].lo.depends_on(variable)
    alone = {Span.ROW: Span.TILE, Span.COLUMN: Span.TILE} if lies else {Span.ROW: Span.OTHER}
    span = alone.get(value.span, value.span) if value.span is not None else None
    axes = _COLUMNS if value.axes else value.axes
    return replace(value, span=span, axes=axes, args=tuple(as_columns(arg, variable) for arg in value.args))


def _name_for(text: str) -> str:
    expression = cst.parse_expression(text)
    names = [part for part in (expression, *expression.children) if isinstance(part, cst.Name)]
    stem = names[0].value if names else "factor"
    return f"{stem.lower()}_value"
