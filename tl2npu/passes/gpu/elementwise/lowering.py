"""Turns the stores of a ``T.Parallel`` nest into statements that the Ascend vectoriser takes (facts 3).

A value is *legal* in a loop if it consists of sums, products and quotients of tiles with vectors and numbers on the
right, and of functions of single elements that have an instruction. Everything else is computed before, into the
destination where it is not read any more, else into a temporary tile.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Stmt, Store
from tl2npu.passes.gpu.elementwise import element_types, functions, masks
from tl2npu.passes.gpu.elementwise.algebra import Algebra
from tl2npu.passes.gpu.elementwise.body import Item, Put, When
from tl2npu.passes.gpu.elementwise.indices import index_vector
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.places import Place, Temporaries, place_of
from tl2npu.passes.gpu.elementwise.reading import Reading, rebuilt
from tl2npu.passes.gpu.elementwise.steps import Form, InLoop, Line, Step, Under
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, binary, cast, number, show, with_args

_SIGNS = frozenset("+-*/")
_ROWS, _COLUMNS = frozenset("r"), frozenset("c")
_NOTHING: frozenset[str] = frozenset()


class Lowering:
    """The work on one nest."""

    def __init__(self, nest: Nest, reading: Reading, temporaries: Temporaries, algebra: Algebra) -> None:
        self.nest = nest
        self.reading = reading
        self.temporaries = temporaries
        self.algebra = algebra
        self.steps: list[Step] = []
        self.codes: dict[str, cst.CSTNode] = {}
        self.slowly: list[tuple[cst.CSTNode, str]] = []
        self.stmt: Stmt = nest.loops[0]
        self.stem = "value"
        self._bound: dict[tuple[str, str], Expr] = {}

    # -- statements -------------------------------------------------------------------------------------------------

    def lower(self, items: Iterable[Item]) -> None:
        """All items, in order."""
        for item in items:
            self.stmt = item.stmt
            if isinstance(item, When):
                self.when(item)
            else:
                self.put(item)
                self.temporaries.release()

    def when(self, item: When) -> None:
        """Stores under a condition without a loop variable."""
        before, parts = self.steps, []
        for branch in (item.then, item.orelse):
            self.steps = []
            self.lower(branch)
            parts.append(tuple(self.steps))
        self.steps = before
        self.codes.setdefault("TL147", item.stmt.node)
        self.steps.append(Under(show(item.condition), parts[0], parts[1], item.stmt))

    def put(self, item: Put) -> None:
        """One store."""
        self._bound = {}
        if item.target is None:
            self.local(item)
            return
        target = item.target
        self.stem = target.name
        if target.span in (Span.OTHER, Span.ROW, Span.COLUMN, Span.POINT):
            self.irregular(item, target)
            return
        place = place_of(target, self.nest)
        value = self.prepared(item.value, place.dtype)
        self.materialise(self.shared_casts(value), place, _NOTHING, item)

    def shared_casts(self, value: Expr) -> Expr:
        """Elements that are converted more than once are converted before."""
        texts = Counter(part.text for part in map(_converted, value.walk()) if part is not None)
        found: dict[str, Expr] = {}
        for part in value.walk():
            load = _converted(part)
            if load is None or texts[load.text] < 2 or load.text in found or not self.is_tile(load):
                continue
            tile = self.tile_place(self.take(part.dtype, load.name), part.dtype)
            self.materialise(part, tile, _NOTHING)
            found[load.text] = tile.load
        return _with_tiles(value, found) if found else value

    def local(self, item: Put) -> None:
        """A local name becomes a tile."""
        assert not self.nest.columns.extent.is_zero
        dtype = element_types.computed(item.value.dtype, item.value.dtype) or "float32"
        own = self.reading.only_here(item.local)
        name = self.temporaries.tile(self.nest.extents, dtype, item.local, keep=True, own=own)
        place = self.tile_place(name, dtype)
        self.note("TL147")
        self.materialise(self.prepared(item.value, dtype), place, _NOTHING, None)
        self.reading.local[item.local] = place.load

    def prepared(self, value: Expr, target: str) -> Expr:
        """The value with every operand of one type, in the form that instructions have."""
        if value.kind == "cast" and value.dtype != target and target != "float32":
            floats = element_types.is_float(value.dtype) and element_types.is_float(target)
            value = value.args[0] if floats else value  # rounded once, to the type that is stored
        dtype = element_types.computed(value.dtype, target)
        self.algebra.seen.clear()
        found = self.algebra.simplify(self.unified(value, dtype))
        for name in sorted(self.algebra.seen):
            self.note(name)
        if target != dtype and found.kind not in ("load", "number") and element_types.plain(target) != dtype:
            found = cast(target, self.temporaries.dtype_text(target), found)
        return found

    def unified(self, expr: Expr, dtype: str) -> Expr:
        """The expression computed in one element type."""
        if expr.kind == "load":
            if expr.dtype in ("", dtype):
                return expr
            return cast(dtype, self.temporaries.dtype_text(dtype), expr)
        if expr.kind == "cast":
            return self.unified_cast(expr, dtype)
        if expr.kind == "select":
            condition, yes, no = expr.args
            return rebuilt(expr, self.condition(condition), self.unified(yes, dtype), self.unified(no, dtype))
        if expr.kind in ("compare", "logic"):
            return self.condition(expr)
        if not expr.args:
            return expr
        if expr.kind == "binary" and expr.name not in _SIGNS:  # integer arithmetic stays so
            own = expr.dtype or "int32"
            found = rebuilt(expr, *(self.unified(arg, own) for arg in expr.args))
            return found if own == dtype else cast(dtype, self.temporaries.dtype_text(dtype), found)
        return rebuilt(expr, *(self.unified(arg, dtype) for arg in expr.args))

    def unified_cast(self, expr: Expr, dtype: str) -> Expr:
        """A conversion that the source writes; a widening one is the type of the computation itself."""
        (arg,) = expr.args
        inner = element_types.promoted(arg.dtype, "")
        if inner == expr.dtype:
            return self.unified(arg, dtype)
        wider = element_types.promoted(inner, expr.dtype) == expr.dtype and element_types.is_float(expr.dtype)
        if wider and expr.dtype == dtype:
            return self.unified(arg, dtype)
        own = element_types.computed(inner, inner)
        found = with_args(expr, self.unified(arg, own))
        if expr.dtype != dtype:
            found = cast(dtype, self.temporaries.dtype_text(dtype), found)
        return found

    def condition(self, expr: Expr) -> Expr:
        """The operands of a comparison in one type."""
        if expr.kind == "compare":
            dtype = element_types.promoted(expr.args[0].dtype, expr.args[1].dtype)
            dtype = element_types.computed(dtype, dtype) if dtype else ""
            return with_args(expr, *(self.unified(arg, dtype) if dtype else arg for arg in expr.args))
        if expr.kind == "logic":
            return with_args(expr, *(self.condition(arg) for arg in expr.args))
        return expr

    def forget_names(self) -> None:
        """Names of numbers that were bound where not everything that follows sees them."""
        self._bound = {}

    def slow(self) -> None:
        """Remember that elements are computed one by one, and how many."""
        self.note("TL146")
        if self.nest.rows is not None:
            self.slowly.append((self.stmt.node, " * ".join(_factor(extent) for extent in self.nest.extents)))

    def note(self, rule: str) -> None:
        """Remember why the nest changes."""
        self.codes.setdefault(rule, self.stmt.node)

    # -- values into places -----------------------------------------------------------------------------------------

    def materialise(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None = None) -> None:
        """Compute a value into a place. ``rest``: buffers that must keep what they hold."""
        if value.kind == "load":
            self.move(value, place, item)
        elif value.kind == "number":
            self.fill(value, place, item)
        elif value.kind == "index":
            self.move(index_vector(self, value, place.dtype), place, None)
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

    def refuse(self, value: Expr) -> None:
        """Raises :class:`Blocked`."""
        shown = show(value)
        if value.kind == "unknown" and value.name:
            raise Blocked("TL150", self.stmt.node, f"`{shown}` has no vector instruction")
        raise Blocked("TL153", self.stmt.node, f"`{shown}` has no vector form")

    def arithmetic(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """Sums and products: one statement, after what it needs."""
        scratch = place if self.usable(place) else None
        if value.kind == "binary" and (
            value.name not in _SIGNS or (value.name == "/" and element_types.is_integer(value.dtype))
        ):
            self.integers(value, place, rest, item)
            return
        found = self.spread_out(self.legal(value, scratch, rest), place, rest)
        rows = self.form(found) == "rows"
        if rows:
            found = self.two_dimensional(found)
        if not self.usable(place) or (rows and not self.takes_rows(place)):
            self.through_tile(found, place, rest)
            return
        self.emit(place, found, is_source(found, item), item)

    def integers(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """Integer division and the like: a loop over the elements (facts 3: g3_i32div)."""
        for part in value.walk():
            if part.kind in ("call", "select", "unknown") or part.span is Span.OTHER:
                raise Blocked("TL151", self.stmt.node, f"`{show(part)}` in integer arithmetic has no vector form")
            if part.kind == "binary" and part.name in ("&", "|", "^", "<<", ">>", "?"):
                raise Blocked("TL151", self.stmt.node, f"`{show(part)}`: the compiler has no form of it")
        if not self.usable(place) or not place.on_chip:
            self.through_tile(value, place, rest)
            return
        self.slow()
        kept = is_source(value, item) and isinstance(self.stmt, Store)
        text = code(self.stmt.node) if kept else f"{show(place.load)} = {show(value)}"
        self.loop_statement(text, "scalar", kept)

    def usable(self, place: Place) -> bool:
        """Whether statements in the loop may store to the place: not to a part of the columns."""
        return place.load.span is Span.TILE

    def takes_rows(self, place: Place) -> bool:
        """Whether a loop over the rows may store there: to ``y[i, j]``, with nothing added to the row."""
        if place.load.load is None or self.nest.rows is None:
            return True
        dims = place.load.load.dims or ()
        return len(dims) == 2 and str(dims[0].lo) == self.nest.rows.var

    def two_dimensional(self, value: Expr) -> Expr:
        """Beside a vector only tiles with two axes are read row by row; others are copied into one."""
        for load in value.loads:
            if load.span is Span.TILE and load.load is not None and len(load.load.dims or ()) > 2:
                tile = self.tile_place(self.take(load.dtype, load.name), load.dtype)
                self.copy(self.region(load), tile.region)
                value = _with_leaf(value, load, tile.load)
        return value

    def through_tile(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """Into a tile of the loop's own size first."""
        tile = self.tile_place(self.take(place.dtype, place.name), place.dtype)
        self.materialise(value, tile, rest)
        self.copy(tile.region, place.region)
        self.note("TL148")

    def emit(self, place: Place, value: Expr, kept: bool = False, item: Put | None = None) -> None:
        """``place = value`` in the loop."""
        target = show(place.load)
        if self.alone(place, value):
            return
        if kept and isinstance(self.stmt, Store):
            text = code(self.stmt.node)
        elif item is not None and item.sign and value.kind == "binary" and self.is_update(item, value):
            text = f"{target} {item.sign}= {show(value.args[1])}"
        else:
            text = f"{target} = {show(value)}"
        self.loop_statement(text, self.form(value), kept)

    def alone(self, place: Place, value: Expr) -> bool:
        """A statement over one axis that is all that a serial loop does: the compiler would run it over the elements
        of all iterations at once (ascend_lower_parallel_to_vector.cc, "serial -> parallel"). True if it was put
        otherwise."""
        if not self.nest.is_all_of_a_loop or self.nest.rows is not None or not is_flat(place.load):
            return False
        if not place.on_chip:
            return False
        names = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
        if place.whole and value.kind == "binary" and value.args[0].kind == "load" and value.args[1].kind == "load":
            left, right = (self.region(arg) if arg.span is Span.TILE else "" for arg in value.args)
            if left and right:
                self.line(f"T.tile.{names[value.name]}({place.name}, {left}, {right})")
                return True
        tile = self.tile_place(self.take(place.dtype, place.name), place.dtype)
        self.loop_statement(f"{show(tile.load)} = {show(value)}", self.form(value))
        self.copy(tile.region, place.region)
        return True

    def is_update(self, item: Put, value: Expr) -> bool:
        """Whether the value still is the target and something."""
        left = value.args[0]
        return value.name == item.sign and item.target is not None and left.text == item.target.text

    def loop_statement(self, text: str, form: Form, kept: bool = False) -> None:
        """A statement in the loops of the nest."""
        self.steps.append(InLoop(self.nest.names, self.nest.extents, text, form, self.stmt, kept))

    def line(self, text: str) -> None:
        """A statement by itself."""
        self.steps.append(Line(text, self.stmt))

    def form(self, value: Expr) -> Form:
        """What the vectoriser makes of a legal value."""
        if self.nest.rows is None:
            return "flat"
        spans = {load.span for load in value.loads}
        if Span.TILE not in spans:
            return "spread"
        return "rows" if spans & {Span.ROW, Span.COLUMN} else "flat"

    def move(self, value: Expr, place: Place, item: Put | None) -> None:
        """An element as it is."""
        if value.text == place.load.text:
            return
        if value.dtype != place.dtype and value.dtype:
            self.convert(cast(place.dtype, "", value), place, _NOTHING)
            return
        if value.span in (Span.ROW, Span.COLUMN):
            if not place.whole:
                self.through_tile(value, place, _NOTHING)
                return
            if is_flat(value):
                self.emit(place, value, is_source(value, item))
                return
            self.fill(number("0.0" if element_types.is_float(place.dtype) else "0"), place, None)
            self.emit(place, binary("+", place.load, value))
            return
        if value.span is Span.POINT:
            self.fill(number("0.0" if element_types.is_float(place.dtype) else "0"), place, None)
            self.emit(place, binary("+", place.load, value))
            return
        if value.span is Span.OTHER:
            self.gather(value, place)
            return
        if not place.on_chip:
            self.emit(place, value, is_source(value, item))
            return
        self.note("TL149" if value.span is Span.TILE else "TL148")
        self.copy(self.region(value), place.region)

    def gather(self, value: Expr, place: Place) -> None:
        """Elements in another order, one by one: as a ``T.Parallel`` they would be taken as they lie (facts 3)."""
        if not place_of_tile(value):
            raise Blocked("TL151", self.stmt.node, f"`{show(value)}` in global memory has no place in a copy")
        if not self.usable(place):
            self.through_tile(value, place, _NOTHING)
            return
        self.slow()
        self.one_by_one(f"{show(place.load)} = {show(value)}")

    def one_by_one(self, text: str) -> None:
        """A statement in serial loops over the elements."""
        for name, extent in reversed(list(zip(self.nest.names, self.nest.extents, strict=True))):
            text = f"for {name} in T.serial({extent}):\n" + textwrap.indent(text, "    ")
        self.line(text)

    def region(self, value: Expr) -> str:
        """A load as a region for ``T.copy``."""
        return value.name if value.load is None else place_of(value, self.nest).region

    def copy(self, source: str, target: str) -> None:
        """``T.copy(source, target)``."""
        self.line(f"T.copy({source}, {target})")

    def fill(self, value: Expr, place: Place, item: Put | None) -> None:
        """A number for every element."""
        literal = value.value
        if literal is not None and element_types.is_float(place.dtype) and "." not in value.text:
            value = number(value.text + ".0") if value.text.lstrip("-").isdigit() else value
        if place.whole:
            self.note("TL149")
            self.line(f"T.tile.fill({place.name}, {show(value)})")
        elif self.usable(place) and place.on_chip:
            kept = item is not None and value.text == item.value.text
            text = f"{show(place.load)} = {show(value)}"
            self.loop_statement(text, "scalar", kept and isinstance(self.stmt, Store))
        else:
            self.through_tile(value, place, _NOTHING)

    def convert(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """Another element type: whole tiles are copied (facts 1, g1_c_copycast)."""
        (arg,) = value.args
        if arg.kind != "load" and arg.dtype in ("", place.dtype):
            self.materialise(arg, place, rest)
            return
        self.note("TL144")
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        source = arg
        if not self.is_tile(arg):
            tile = self.tile_place(self.take(arg.dtype or "float32", place.name), arg.dtype or "float32")
            self.materialise(arg, tile, rest)
            source = tile.load
        path = element_types.conversions(source.dtype, place.dtype)
        if path is None:
            text = f"no instruction converts {source.dtype} to {place.dtype}"
            raise Blocked("TL154", self.stmt.node, text)
        region = self.region(source)
        before = source.dtype
        for step in path:
            last = step is path[-1]
            target = place.region if last else self.take(step, place.name)
            if (
                element_types.is_known(before)
                and not element_types.is_integer(before)
                and element_types.is_integer(step)
            ):
                count = " * ".join(_factor(extent) for extent in self.nest.extents)
                self.line(f'T.tile.cast({target}, {region}, "CAST_TRUNC", {count})')
            else:
                self.copy(region, target)
            region, before = target, step

    def is_tile(self, value: Expr) -> bool:
        """A load of all elements of a buffer, as operators on whole tiles need it."""
        return value.kind == "load" and place_of_whole(value, self.nest)

    def function(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """A function of elements."""
        name = value.name
        if name in functions.VECTOR:
            self.vector_function(value, place, rest, item)
        elif name in ("max", "min"):
            self.limit(value, place, rest, item)
        elif name in functions.TILE:
            self.tile_function(value, place, rest, functions.TILE[name])
        elif name in functions.ROUNDING:
            self.rounding(value, place, rest)
        elif name == "pow":
            self.power(value, place, rest)
        else:
            raise Blocked("TL150", self.stmt.node, f"T.{name} has no vector instruction")

    def vector_function(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """exp and the like: alone on an element; ``t = expression; y = exp(t)``."""
        if not self.usable(place) or not place.on_chip:
            self.through_tile(value, place, rest)
            return
        (arg,) = value.args
        if not self.is_element(arg):
            if arg.kind not in ("load", "index", "number"):
                self.note("TL140")
            self.materialise(arg, place, rest)
            value = with_args(value, place.load)
        self.emit(place, value, is_source(value, item))

    def is_element(self, value: Expr) -> bool:
        """A load that a function may stand on."""
        if value.kind != "load":
            return False
        return value.span is Span.TILE or (value.span in (Span.COLUMN, Span.ROW) and is_flat(value))

    def limit(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """``max`` and ``min``: of two tiles in the loop, else as an operator on whole tiles."""
        left, right = value.args
        if self.limits_in_loop(value) and self.usable(place) and place.on_chip:
            scratch = place
            found = self.legal(value, scratch, rest)
            self.emit(place, found, is_source(found, item))
            return
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        self.note("TL143")
        if right.is_number or right.span is Span.POINT:
            source = self.tile_operand(left, place, rest)
            self.line(f"T.tile.{value.name}({place.name}, {source}, {self.scalar(right, place.dtype)})")
            return
        source = self.tile_operand(left, place, rest | right.buffers)
        other = self.tile_operand(right, place, rest | {source, place.name})
        self.line(f"T.tile.{value.name}({place.name}, {source}, {other})")

    def limits_in_loop(self, value: Expr) -> bool:
        """``max(a, 0)`` of an element, or two values that change along rows and columns."""
        left, right = value.args
        if right.is_number:
            return value.name == "max" and right.value == 0.0 and left.kind == "load" and left.span is Span.TILE
        full = frozenset("rc") if self.nest.rows is not None else _COLUMNS
        return left.axes == full and right.axes == full and not {left.kind, right.kind} & {"select", "cast", "index"}

    def tile_operand(self, value: Expr, place: Place | None, rest: frozenset[str]) -> str:
        """The name of a whole tile that holds a value."""
        if self.is_tile(value):
            return self.region(value)
        where = self.scratch(place, rest, value.dtype)
        self.materialise(value, where, rest)
        return where.name

    def scalar(self, value: Expr, dtype: str) -> str:
        """A number as an argument of a tile operator."""
        if value.value is not None and element_types.is_float(dtype) and value.text.lstrip("-").isdigit():
            return f"{value.text}.0"
        return show(value)

    def tile_function(self, value: Expr, place: Place, rest: frozenset[str], operator: str) -> None:
        """An operator on whole tiles whose source and destination must not overlap."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        self.note("TL152")
        (arg,) = value.args
        source = self.tile_operand(arg, None, rest) if not self.is_tile(arg) else self.region(arg)
        if source == place.name:
            source = self.take(place.dtype, place.name)
            self.copy(place.name, source)
        self.line(f"T.tile.{operator}({place.name}, {source})")

    def rounding(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """floor and the like: to an integer and back."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        self.note("TL152")
        source = self.tile_operand(value.args[0], place, rest)
        whole = self.take("int32", place.name)
        count = " * ".join(_factor(extent) for extent in self.nest.extents)
        self.line(f'T.tile.cast({whole}, {source}, "{functions.ROUNDING[value.name]}", {count})')
        self.copy(whole, place.name)

    def power(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """``x ** y``: both operands are tiles."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        base, exponent = value.args
        if exponent.value == 2.0:
            where = self.scratch(place, rest, value.dtype)
            self.materialise(base, where, rest)
            self.emit(place, binary("*", where.load, where.load))
            return
        self.note("TL152")
        left = self.tile_operand(base, None, rest)
        right = self.tile_operand(replace(exponent, dtype=exponent.dtype or value.dtype), None, rest | {left})
        self.line(f"T.tile.pow({place.name}, {left}, {right})")

    # -- values inside of values ------------------------------------------------------------------------------------

    def take(self, dtype: str, wish: str) -> str:
        """A temporary tile of the loop's size."""
        return self.temporaries.tile(self.nest.extents, dtype, wish)

    def tile_place(self, name: str, dtype: str) -> Place:
        """A new tile of the loop's size as a place."""
        text = f"{name}[{', '.join(self.nest.names)}]"
        axes = frozenset("rc") if self.nest.rows is not None else _COLUMNS
        load = Expr("load", name, (), dtype, text=text, span=Span.TILE, axes=axes)
        return Place(name, dtype, load, True, name)

    def scratch(self, place: Place | None, rest: frozenset[str], dtype: str) -> Place:
        """The place itself if it may be overwritten already, else a temporary tile."""
        if place is not None and place.whole and place.name not in rest and dtype in ("", place.dtype):
            return place
        wish = place.name if place is not None else self.wish()
        found = dtype or (place.dtype if place is not None else "float32")
        return self.tile_place(self.take(found, wish), found)

    def wish(self) -> str:
        """What temporaries of the statement are named after."""
        return self.stem

    def hoist(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        """Compute a part before, and take its place's element instead."""
        where = self.scratch(place, rest, value.dtype)
        self.materialise(value, where, rest)
        return where.load

    def legal(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        """The value as the right side of a statement in the loop; what cannot stand there is computed before."""
        if value.kind == "load":
            return self.legal_load(value, place, rest)
        if value.kind == "number":
            return self.legal_number(value)
        if value.kind == "index":
            return index_vector(self, value, place.dtype if place is not None else "float32")
        if "c" not in value.axes and value.kind in ("binary", "negative", "call", "cast", "select"):
            return self.row_value(value) if value.axes else self.point_value(value, place, rest)
        if self.is_worth_a_vector(value):
            return self.column_value(value)
        if value.kind == "negative":
            return with_args(value, self.legal(value.args[0], place, rest))
        if value.kind == "binary":
            return self.legal_binary(value, place, rest)
        if value.kind == "call" and value.name in functions.VECTOR and self.is_element(value.args[0]):
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
            return self.hoist(value, place, rest)
        return value

    def legal_number(self, value: Expr) -> Expr:
        """A number that the kernel computes needs a name (facts 3: g3b_gmscalar, gy_var)."""
        whole = value.name == "int"
        if not value.dynamic or value.value is not None or (value.text.isidentifier() and not whole):
            return value
        key = ("number", value.text)
        if key not in self._bound:
            name = self.temporaries.fresh(_name_for(value.text))
            self.line(f"{name} = T.float32({show(value)})" if whole else f"{name} = {show(value)}")
            self._bound[key] = number(name, dynamic=True)
        return self._bound[key]

    def legal_binary(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        if value.name not in _SIGNS or (value.name == "/" and element_types.is_integer(value.dtype)):
            return self.hoist(value, None, rest)
        left, right = value.args
        if "c" not in left.axes:  # a number or a row vector on the left is misread (facts 3: g3_rowdiv, g3_sleft)
            self.note("TL141")
            left = self.hoist(replace(left, dtype=left.dtype or value.dtype), place, rest | right.buffers)
            return with_args(value, left, self.legal(right, place, rest | left.buffers))
        return self.legal_pair(value, place, rest)

    def legal_pair(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        left, right = value.args
        left = self.legal(left, place, rest | right.buffers)
        return with_args(value, left, self.legal(right, place, rest | left.buffers))

    def row_value(self, value: Expr) -> Expr:
        """A value for each row that is more than an element: into a vector, in a loop over the rows."""
        rows = self.nest.rows
        assert rows is not None
        self.note("TL141")
        dtype = value.dtype or "float32"
        stem = next((load.name for load in value.loads), "rows")
        name = self.temporaries.tile((rows.text,), dtype, stem)
        self.along(rows_only(self.nest), value, name, dtype)
        return Expr("load", name, (), dtype, text=f"{name}[{rows.name}]", span=Span.ROW, axes=_ROWS)

    def is_worth_a_vector(self, value: Expr) -> bool:
        """A value for each column that no instruction of the loop computes from elements."""
        if value.kind not in ("call", "cast", "select") or self.nest.rows is None or value.axes != _COLUMNS:
            return False
        return not (value.kind == "call" and value.name in functions.VECTOR and self.is_element(value.args[0]))

    def column_value(self, value: Expr) -> Expr:
        """A value for each column that no instruction of the loop computes: into a vector, once for all rows."""
        columns = self.nest.columns
        self.note("TL144" if value.kind == "cast" else "TL140")
        dtype = value.dtype or "float32"
        stem = next((load.name for load in value.loads), "columns")
        name = self.temporaries.tile((columns.text,), dtype, stem)
        self.along(replace(self.nest, rows=None), value, name, dtype)
        return Expr("load", name, (), dtype, text=f"{name}[{columns.name}]", span=Span.COLUMN, axes=_COLUMNS)

    def along(self, nest: Nest, value: Expr, name: str, dtype: str) -> None:
        """Compute a value that changes along one axis only, in a loop over that axis."""
        inner = Lowering(nest, self.reading, self.temporaries, self.algebra)
        inner.slowly = self.slowly
        inner.stmt, inner.steps, inner.codes, inner.stem = self.stmt, self.steps, self.codes, self.stem
        place = inner.tile_place(name, dtype)
        inner.materialise(as_columns(value), place, _NOTHING)

    def point_value(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        """A value that is the same for all elements but is computed from elements of tiles."""
        leaf = next((part for part in value.walk() if part.kind == "load"), None)
        leaf = leaf or next((part for part in value.walk() if part.kind == "number"), None)
        if leaf is None or any(load.span is not Span.POINT for load in value.loads):
            self.refuse(value)
        assert leaf is not None
        others = frozenset(load.name for load in value.loads if load is not leaf)
        start = replace(leaf, dtype=leaf.dtype or value.dtype or (place.dtype if place is not None else "float32"))
        found = _with_leaf(value, leaf, self.hoist(start, place, rest | others))
        return self.legal(found, place, rest)

    def plain_condition(self, condition: Expr) -> None:
        """A condition that a scalar loop can compute; raises :class:`Blocked`."""
        for part in condition.walk():
            if part.kind in ("call", "select") or (part.kind == "unknown" and part.name):
                raise Blocked("TL151", self.stmt.node, f"`{show(part)}` in a condition on single elements")

    def spread_out(self, value: Expr, place: Place, rest: frozenset[str]) -> Expr:
        """Without a tile in it an expression may hold one vector only: the first one is spread before."""
        if self.nest.rows is None:
            return value
        loads = list(value.loads)
        if len(loads) < 2 or any(load.span is Span.TILE for load in loads):
            return value
        first = next((load for load in loads if load.span in (Span.ROW, Span.COLUMN)), None)
        if first is None:
            return value
        others = frozenset(load.name for load in loads if load is not first)
        tile = self.hoist(first, place if place.whole else None, rest | others)
        return _with_leaf(value, first, tile)

    # -- forms without a vector instruction -------------------------------------------------------------------------

    def irregular(self, item: Put, target: Expr) -> None:
        """A store to something else than ``x[i, j]``: computed in a tile, then stored element by element."""
        if not place_of_tile(target) or target.span is Span.POINT or target.axes != self.all_axes():
            raise Blocked("TL151", self.stmt.node, f"a store to `{show(target)}` has no vector form")
        tile = self.tile_place(self.take(target.dtype, self.wish()), target.dtype)
        value = self.prepared(item.value, target.dtype)
        if value.kind == "load" and value.dtype == target.dtype:
            source = value
        else:
            self.materialise(self.shared_casts(value), tile, _NOTHING)
            source = tile.load
        self.slow()
        self.one_by_one(f"{show(target)} = {show(source)}")

    def all_axes(self) -> frozenset[str]:
        """The axes of the nest."""
        return frozenset("rc") if self.nest.rows is not None else _COLUMNS


def is_source(value: Expr, item: Put | None) -> bool:
    """Whether a value is what the source says, in the source's words."""
    if item is None or value is not item.value:
        return False
    return (value.args[1] if item.sign else value).node is not None


def is_flat(value: Expr) -> bool:
    """An element of a buffer with one axis."""
    return value.load is None or len(value.load.dims or ()) == 1


def place_of_tile(target: Expr) -> bool:
    """Whether a scalar loop may store there: scalar stores elsewhere run on the wrong core (facts 3: g3b_gmst)."""
    return target.load is not None and target.load.buffer.memory is not Memory.GM


def place_of_whole(value: Expr, nest: Nest) -> bool:
    """Whether a load goes over every element of its buffer; a temporary tile always does."""
    if value.load is None:
        return value.span is Span.TILE
    return place_of(value, nest).whole


def rows_only(nest: Nest) -> Nest:
    """The loop over the rows of a nest, as a nest over one axis."""
    assert nest.rows is not None
    return replace(nest, rows=None, columns=nest.rows)


def as_columns(value: Expr) -> Expr:
    """A value of a row as one of a loop over the rows only."""
    alone = {Span.ROW: Span.TILE, Span.COLUMN: Span.TILE}
    span = alone.get(value.span, value.span) if value.span is not None else None
    axes = _COLUMNS if value.axes else value.axes
    return replace(value, span=span, axes=axes, args=tuple(as_columns(arg) for arg in value.args))


def _converted(value: Expr) -> Expr | None:
    """The element that is converted."""
    return value.args[0] if value.kind == "cast" and value.args[0].kind == "load" else None


def _with_tiles(value: Expr, tiles: dict[str, Expr]) -> Expr:
    load = _converted(value)
    if load is not None and load.text in tiles:
        return tiles[load.text]
    return with_args(value, *(_with_tiles(arg, tiles) for arg in value.args)) if value.args else value


def _with_leaf(value: Expr, leaf: Expr, new: Expr) -> Expr:
    if value is leaf:
        return new
    return with_args(value, *(_with_leaf(arg, leaf, new) for arg in value.args)) if value.args else value


def _factor(text: str) -> str:
    return text if text.replace("_", "").replace(".", "").isalnum() else f"({text})"


def _name_for(text: str) -> str:
    names = [part for part in cst.parse_expression(text).children if isinstance(part, cst.Name)]
    stem = names[0].value if names else "factor"
    return f"{stem.lower()}_value"
