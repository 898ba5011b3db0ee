"""Values into places, one instruction after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tl2npu.dialects.element_types import known, takes
from tl2npu.dialects.functions import ASCEND_LOOPS
from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Store
from tl2npu.passes.gpu.elementwise import functions
from tl2npu.passes.gpu.elementwise.algebra import LN_2, LOG2_E, SIGNS
from tl2npu.passes.gpu.elementwise.body import Put
from tl2npu.passes.gpu.elementwise.one_type import OneType
from tl2npu.passes.gpu.elementwise.places import Place
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, binary, call, cast, number, show, with_args, with_part
from tl2npu.passes.gpu.elementwise.wholes import is_whole
from tl2npu.passes.gpu.elementwise.work import is_flat, is_source, loses_form, place_of_tile
from tl2npu.passes.writing.statements import factor
from tl2npu.tile.meaning import Formula, parts_of

_NOTHING: frozenset[str] = frozenset()
_OPERATORS = {sign: name for name, sign in SIGNS.items()}


class Instructions(OneType):
    """Copies, fills, conversions and functions."""

    def emit(self, place: Place, value: Expr, kept: bool = False, item: Put | None = None) -> None:
        """``place = value`` in the loop."""
        if self.is_half(place.dtype):
            written = self.halves.written(value, place.dtype, self.temporaries.dtype_text(place.dtype))
            if written is not value:
                self.note("TL751")
                value, kept = written, False
        target = show(place.load)
        if self.alone(place, value) or self.by_element(place, value):
            return
        if kept and isinstance(self.stmt, Store):
            text = code(self.stmt.node)
        elif item is not None and item.sign and value.kind == "binary" and self.is_update(item, value):
            text = f"{target} {item.sign}= {show(value.args[1])}"
        else:
            text = f"{target} = {show(value)}"
        if loses_form(text) and (functions := [part for part in value.walk() if _is_vector_function(part)]):
            for part in functions:  # a loop over the elements has none
                value = with_part(value, part, self.hoist(part, None, value.buffers | {place.name}))
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
        if place.whole and value.kind == "binary" and value.args[0].kind == "load" and value.args[1].kind == "load":
            left, right = (self.region(arg) if arg.span is Span.TILE else "" for arg in value.args)
            if left and right:
                self.line(f"T.tile.{_OPERATORS[value.name]}({place.name}, {left}, {right})")
                return True
        tile = self.tile_place(self.take(place.dtype, place.name), place.dtype)
        self.loop_statement(f"{show(tile.load)} = {show(value)}", self.form(value))
        self.copy(tile.region, place.region)
        return True

    def by_element(self, place: Place, value: Expr) -> bool:
        """A tile and an element of a vector as an operator: a loop would read it for every row. True if it was put so.

        Of a buffer with two axes the operator takes another element (facts 2: g2_scalar).
        """
        if self.nest.rows is None or not place.whole or value.kind != "binary" or value.name not in _OPERATORS:
            return False
        left, right = value.args
        if right.span is not Span.POINT or not self.is_tile(left) or not is_flat(right) or right.load is None:
            return False
        if not right.load.buffer.is_tile:
            return False
        self.note("TL158")
        self.line(f"T.tile.{_OPERATORS[value.name]}({place.name}, {self.region(left)}, {show(right)})")
        return True

    def is_update(self, item: Put, value: Expr) -> bool:
        """Whether the value still is the target and something."""
        left = value.args[0]
        return value.name == item.sign and item.target is not None and left.text == item.target.text

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
            if value.dtype.startswith("bfloat16"):  # or a type that may be it: no instruction spreads that (TL710)
                wide = self.picked(cast("float32", "", value))
                assert wide is not None
                self.convert(cast(place.dtype, self.temporaries.dtype_text(place.dtype), wide), place, _NOTHING)
                return
            if self.is_spread(value):
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
            vector = self.picked(value)
            if vector is not None:
                self.move(vector, place, None)
            else:
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
            raise Blocked("TL151", self.stmt.node, f"cannot copy `{show(value)}` from global memory")
        if not self.usable(place):
            self.through_tile(value, place, _NOTHING)
            return
        self.slow()
        self.one_by_one(f"{show(place.load)} = {show(value)}")

    def fill(self, value: Expr, place: Place, item: Put | None) -> None:
        """A number for every element."""
        literal = value.value
        if literal is not None and element_types.is_float(place.dtype) and "." not in value.text:
            value = number(value.text + ".0") if value.text.lstrip("-").isdigit() else value
        if place.whole and not takes("tile.fill", known(place.dtype) or "float32"):
            self.slow()
            self.one_by_one(f"{show(place.load)} = {show(value)}")
        elif place.whole:
            self.note("TL149")
            self.line(f"T.tile.fill({place.name}, {show(value)})")
        elif self.usable(place) and place.on_chip:
            kept = item is not None and value.text == item.value.text and is_source(item.value, item)
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
            with self.exact(element_types.is_integer(place.dtype)):
                self.materialise(arg, tile, rest)
            source = tile.load
        path = self.conversion(source.dtype, place.dtype, is_whole(arg))
        if path is None:
            text = f"no instruction converts {source.dtype} to {place.dtype}"
            raise Blocked("TL154", self.stmt.node, text)
        region, before, own = self.region(source), source.dtype, source is not arg
        for step in path:
            last = step is path[-1]
            in_place = own and step.dtype == before and step.text.count("{src}") == 1
            target = place.region if last else region if in_place else self.take(step.dtype, place.name)
            for line in step.text.format(dst=target, src=region, n=self.count()).splitlines():
                self.line(line)
            region, before, own = target, step.dtype, True

    def conversion(self, source: str, target: str, whole: bool) -> list[element_types.Step] | None:
        """The steps that convert whatever types the file gives to names of types. Raises Blocked where these differ."""
        sources, targets = self.reading.choices(source), self.reading.choices(target)
        found = [element_types.conversions(one, other, whole) for one in sources for other in targets]
        named = [path and [*path[:-1], replace(path[-1], dtype=target)] for path in found]
        if any(path != named[0] for path in named):
            name, types = (source, sources) if len(sources) > 1 else (target, targets)
            text = f"`{name}` is {' or '.join(types)} here, which are converted in different ways"
            raise Blocked("TL154", self.stmt.node, text)
        return named[0]

    @contextmanager
    def exact(self, exactly: bool = True) -> Iterator[None]:
        """While a value is computed that is rounded next."""
        before, self.exactly = self.exactly, self.exactly or exactly
        yield
        self.exactly = before

    def count(self) -> str:
        """How many elements the loop has."""
        return " * ".join(factor(extent) for extent in self.nest.extents)

    def function(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """A function of elements."""
        name = value.name
        if name in ASCEND_LOOPS:
            self.vector_function(value, place, rest, item)
        elif name in ("max", "min"):
            self.limit(value, place, rest, item)
        elif name in functions.TILE:
            self.tile_function(value, place, rest, functions.TILE[name])
        elif name in functions.ROUNDING:
            self.rounding(value, place, rest)
        elif name == "pow":
            self.power(value, place, rest)
        elif name == functions.POWER_OF_TWO:
            self.power_of_two(value, place, rest)
        elif name in functions.LOG2_ROUNDED.values():
            self.rounded_log2(value, place, rest)
        elif (formula := parts_of(name)) is not None:
            self.by_formula(value, formula, place, rest)
        else:
            raise Blocked("TL150", self.stmt.node, f"T.{name} has no vector instruction")

    def by_formula(self, value: Expr, formula: Formula, place: Place, rest: frozenset[str]) -> None:
        """A function that no instruction computes: the argument and each step in a tile, then the formula's value."""
        self.note("TL152")
        dtype = value.dtype or place.dtype
        (arg,) = value.args
        known = {"x": arg if self.is_tile(arg) else self.hoist(replace(arg, dtype=arg.dtype or dtype), None, rest)}
        for name, step in formula.steps:
            found = self.algebra.simplify(self.algebra.composed(step, known))
            where = self.tile_place(known[name].name, dtype) if name in known else None
            known[name] = self.hoist(found, where, rest)
        self.materialise(self.algebra.simplify(self.algebra.composed(formula.value, known)), place, rest)

    def vector_function(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None) -> None:
        """exp and the like: alone on an element; ``t = expression; y = exp(t)``."""
        if not self.usable(place) or not place.on_chip:
            self.through_tile(value, place, rest)
            return
        if self.single:
            if not place.whole:
                self.through_tile(value, place, rest)
                return
            self.note("TL152")
            source = self.tile_operand(value.args[0], place, rest)
            self.line(f"T.tile.{ASCEND_LOOPS[value.name]}({place.name}, {source})")
            return
        (arg,) = value.args
        if not self.is_element(arg):
            if arg.kind not in ("load", "index", "number"):
                self.note("TL140")
            self.materialise(arg, place, rest)
            value = with_args(value, place.load)
        self.emit(place, value, is_source(value, item))

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
        if right.is_number or (right.span is Span.POINT and is_flat(right)):
            source = self.tile_operand(left, place, rest)
            self.line(f"T.tile.{value.name}({place.name}, {source}, {self.scalar(right, place.dtype)})")
            return
        source = self.tile_operand(left, place, rest | right.buffers)
        other = self.tile_operand(right, place, rest | {source, place.name})
        self.line(f"T.tile.{value.name}({place.name}, {source}, {other})")

    def tile_function(self, value: Expr, place: Place, rest: frozenset[str], operator: str) -> None:
        """An operator on whole tiles whose source and destination must not overlap."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        self.note("TL152")
        (arg,) = value.args
        source = self.tile_operand(replace(arg, dtype=arg.dtype or place.dtype), None, rest)
        if source == place.name:
            source = self.take(place.dtype, place.name)
            self.copy(place.name, source)
        self.line(f"T.tile.{operator}({place.name}, {source})")

    def rounding(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """floor and the like: a cast of float32 to float32, which takes every number, infinities and NaN."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        self.note("TL152")
        wide = self.tile_place(self.take("float32", place.name), "float32") if place.dtype != "float32" else place
        with self.exact():
            source = self.tile_operand(value.args[0], None if wide is not place else place, rest)
        if wide is not place:
            self.copy(source, wide.name)
            source = wide.name
        self.line(f'T.tile.cast({wide.name}, {source}, "{functions.ROUNDING[value.name]}", {self.count()})')
        if wide is not place:
            self.copy(wide.name, place.name)

    def power_of_two(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """``2 ** k`` of whole numbers: what ``exp`` comes close to by far more than the eight bits of a bfloat16."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        wide = place if place.dtype == "float32" else self.tile_place(self.take("float32", place.name), "float32")
        self.materialise(call("exp", binary("*", value.args[0], number(LN_2))), wide, rest)
        short = self.take("bfloat16", place.name)
        self.copy(wide.name, short)
        self.copy(short, wide.name)
        self.temporaries.give_back(short)
        if wide is not place:
            self.convert(cast(place.dtype, "", wide.load), place, rest)

    def rounded_log2(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """``k`` is near the logarithm, ``2 ** k`` exact: a comparison says whether ``k`` is the result."""
        if not place.whole:
            self.through_tile(value, place, rest)
            return
        (arg,) = value.args
        x = arg if self.is_tile(arg) else self.hoist(replace(arg, dtype=arg.dtype or "float32"), None, rest)
        near, power = (self.tile_place(self.take("float32", place.name), "float32") for _ in range(2))
        self.materialise(binary("*", call("log", x), number(LOG2_E)), near, rest)
        self.line(f'T.tile.cast({near.name}, {near.name}, "CAST_RINT", {self.count()})')
        self.materialise(call(functions.POWER_OF_TWO, near.load), power, rest)
        up = value.name == functions.LOG2_ROUNDED["ceil"]
        beside = Expr("compare", ">" if up else "<", (x, power.load), "bool", axes=x.axes)
        moved = binary("+" if up else "-", near.load, number("1.0"))
        chosen = Expr("select", "", (beside, moved, near.load), "float32", axes=x.axes)
        if place.dtype == "float32":
            self.materialise(chosen, place, rest)
        else:
            self.materialise(chosen, near, rest)
            self.convert(cast(place.dtype, "", near.load), place, rest)

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
        dtype = value.dtype or place.dtype
        left = self.tile_operand(replace(base, dtype=base.dtype or dtype), None, rest)
        right = self.tile_operand(replace(exponent, dtype=exponent.dtype or dtype), None, rest | {left})
        self.line(f"T.tile.pow({place.name}, {left}, {right})")


def _is_vector_function(value: Expr) -> bool:
    return value.kind == "call" and value.name in ASCEND_LOOPS
