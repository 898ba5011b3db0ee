"""What the steps of the lowering share: the nest, the statements so far, temporary tiles."""

from __future__ import annotations

import difflib
import math
import struct
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import libcst as cst

from tl2npu.dialects.gpu import OPERATORS
from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Stmt, Store
from tl2npu.kernel.numbers import is_float
from tl2npu.kernel.simplified import loses_vector_form
from tl2npu.passes.gpu.elementwise import functions
from tl2npu.passes.gpu.elementwise.algebra import Algebra
from tl2npu.passes.gpu.elementwise.body import Put
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.places import Place, Temporaries, place_of
from tl2npu.passes.gpu.elementwise.reading import OWN, Reading
from tl2npu.passes.gpu.elementwise.steps import Form, InLoop, Line, Step
from tl2npu.passes.gpu.elementwise.tree import Expr, Span, number, parsed, show, with_args
from tl2npu.passes.writing.statements import factor

_COLUMNS = frozenset("c")
VECTORS = frozenset({Span.ROW, Span.COLUMN, Span.POINT})
"""Elements that do not change along both axes: beside a tile, they make the compiler go row by row."""


class Work:
    """The work on one nest."""

    def __init__(self, nest: Nest, reading: Reading, temporaries: Temporaries, algebra: Algebra) -> None:
        self.nest = nest
        self.reading = reading
        self.temporaries = temporaries
        self.algebra = algebra
        self.halves = Halves(reading, algebra.constants)
        self.steps: list[Step] = []
        self.codes: dict[str, cst.CSTNode] = {}
        self.slowly: list[tuple[cst.CSTNode, str]] = []
        self.unrounded: list[tuple[cst.CSTNode, str, str]] = []
        self.doubts: list[tuple[cst.CSTNode, str]] = []
        self.exactly = False
        self.approximate: frozenset[str] = frozenset()
        self.stmt: Stmt = nest.loops[0]
        self.stem = "value"
        self.single = False
        """A caller gives the innermost loop one turn: the compiler makes a scalar of it, for which there is no exp."""
        self.is_long = False
        """The last axis has whole repeats of a comparison in all calls that are known."""
        self.one_row = False
        """There is one row in the loop, or a caller gives it one."""
        self._bound: dict[str, Expr] = {}

    def materialise(self, value: Expr, place: Place, rest: frozenset[str], item: Put | None = None) -> None:
        """Compute a value into a place. ``rest``: buffers that must keep what they hold."""
        raise NotImplementedError

    def legal(self, value: Expr, place: Place | None, rest: frozenset[str]) -> Expr:
        """The value as the right side of a statement in the loop; what cannot stand there is computed before."""
        raise NotImplementedError

    def picked(self, value: Expr) -> Expr | None:
        """Elements in another order that change along one of two axes only: once, into a vector."""
        raise NotImplementedError

    def forget_names(self) -> None:
        """Names of numbers that were bound where not everything that follows sees them."""
        self._bound = {}

    def slow(self) -> None:
        """Remember that elements are computed one by one, and how many."""
        self.note("TL146")
        if self.nest.rows is not None:
            self.slowly.append((self.stmt.node, " * ".join(factor(extent) for extent in self.nest.extents)))

    def note(self, rule: str) -> None:
        """Remember why the nest changes."""
        self.codes.setdefault(rule, self.stmt.node)

    def refuse(self, value: Expr) -> None:
        """Raises :class:`Blocked`."""
        shown = show(value)
        if value.kind == "unknown" and value.name:
            name = value.name.rpartition(".")[2]
            close = [] if name in OPERATORS else difflib.get_close_matches(name, functions.MATH, n=1, cutoff=0.75)
            meant = f"; did you mean `{close[0]}`?" if close else ""
            raise Blocked("TL150", self.stmt.node, f"`{shown}` has no vector instruction{meant}")
        if value.kind == "unknown" and isinstance(value.node, cst.Call):
            text = f"cannot tell from this file what function `{code(value.node.func)}` is"
            raise Blocked("TL903", self.stmt.node, text)
        raise Blocked("TL153", self.stmt.node, f"`{shown}` cannot be vectorised")

    def plain_condition(self, condition: Expr) -> None:
        """A condition that a scalar loop can compute; raises :class:`Blocked`."""
        for part in condition.walk():
            if part.kind in ("call", "select") or (part.kind == "unknown" and part.name):
                shown = f"`{show(part)}`" if show(part) else "a choice between two values"
                raise Blocked("TL151", self.stmt.node, f"{shown} is not supported in a condition on single elements")

    def loop_statement(self, text: str, form: Form, kept: bool = False) -> None:
        """A statement in the loops of the nest."""
        if form == "rows" and self.nest.rows is not None and self.nest.rows.extent.constant == 1:
            form = "flat"  # there is no loop over one row
        if loses_form(text):
            form = "scalar"
        self.steps.append(InLoop(self.nest.names, self.nest.extents, text, form, self.stmt, kept))

    def line(self, text: str) -> None:
        """A statement by itself."""
        self.steps.append(Line(text, self.stmt))

    def one_by_one(self, text: str) -> None:
        """A statement in serial loops over the elements."""
        for name, extent in reversed(list(zip(self.nest.names, self.nest.extents, strict=True))):
            text = f"for {name} in T.serial({extent}):\n" + textwrap.indent(text, "    ")
        self.line(text)

    def form(self, value: Expr) -> Form:
        """What the vectoriser makes of a legal value."""
        if self.nest.rows is None:
            return "flat"
        spans = {load.span for load in value.loads}
        if Span.TILE not in spans:
            return "spread"
        return "rows" if spans & VECTORS else "flat"

    def region(self, value: Expr) -> str:
        """A load as a region for ``T.copy``."""
        return value.name if value.load is None else place_of(value, self.nest).region

    def copy(self, source: str, target: str) -> None:
        """``T.copy(source, target)``."""
        self.line(f"T.copy({source}, {target})")

    def is_tile(self, value: Expr) -> bool:
        """A load of all elements of a buffer, as operators on whole tiles need it."""
        return value.kind == "load" and place_of_whole(value, self.nest)

    def is_element(self, value: Expr) -> bool:
        """A load that a function may stand on."""
        if value.kind != "load":
            return False
        return value.span is Span.TILE or (value.span in (Span.COLUMN, Span.ROW) and is_flat(value))

    def is_spread(self, value: Expr) -> bool:
        """Whether an assignment of the element of a vector fills its row or column.

        The value of a single row is taken for a row of its own: the compiler copies what lies behind it (facts 11).
        """
        return is_flat(value) and not (value.span is Span.ROW and self.one_row)

    def limits_in_loop(self, value: Expr) -> bool:
        """``max(a, 0)`` of an element, or two values that change along rows and columns."""
        left, right = value.args
        if right.is_number:
            return value.name == "max" and right.value == 0.0 and left.kind == "load" and left.span is Span.TILE
        full = frozenset("rc") if self.nest.rows is not None else _COLUMNS
        return left.axes == full and right.axes == full and not {left.kind, right.kind} & {"select", "cast", "index"}

    def scalar(self, value: Expr, dtype: str) -> str:
        """A number as an argument of a tile operator."""
        if value.value is not None and element_types.is_float(dtype) and value.text.lstrip("-").isdigit():
            return f"{value.text}.0"
        return show(value)

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

    def tile_operand(self, value: Expr, place: Place | None, rest: frozenset[str]) -> str:
        """The name of a whole tile that holds a value."""
        if self.is_tile(value):
            return self.region(value)
        where = self.scratch(place, rest, value.dtype)
        self.materialise(value, where, rest)
        return where.name

    def all_axes(self) -> frozenset[str]:
        """The axes of the nest."""
        return frozenset("rc") if self.nest.rows is not None else _COLUMNS

    def usable(self, place: Place) -> bool:
        """Whether statements in the loop may store to the place: not to a part of the columns."""
        return place.load.span is Span.TILE

    def takes_rows(self, place: Place) -> bool:
        """Whether a loop over the rows may store there: to ``y[i, j]``, with nothing added to the row."""
        if place.load.load is None or self.nest.rows is None:
            return True
        dims = place.load.load.dims or ()
        return len(dims) == 2 and str(dims[0].lo) == self.nest.rows.var

    def through_tile(self, value: Expr, place: Place, rest: frozenset[str]) -> None:
        """Into a tile of the loop's own size first."""
        tile = self.tile_place(self.take(place.dtype, place.name), place.dtype)
        self.materialise(value, tile, rest)
        self.copy(tile.region, place.region)
        self.note("TL148")


@lru_cache(maxsize=1024)
def loses_form(text: str) -> bool:
    """Whether a statement has no vector form once it is simplified."""
    if "[" not in text.partition("=")[2]:
        return False
    line = cst.parse_module(text).body[0]
    return isinstance(line, cst.SimpleStatementLine) and loses_vector_form(line.body[0])


def is_source(value: Expr, item: Put | None) -> bool:
    """Whether a value is what the statement says, in its words, and not a name that the loop binds."""
    if item is None or value is not item.value:
        return False
    said = (value.args[1] if item.sign else value).node
    return said is not None and (not isinstance(item.stmt, Store) or said is item.stmt.value.node)


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


# Numbers beside halves: where a GPU computes in float32, and how a number is written in float16.
#
# A Python float is a float32 for TVM (``BinaryOpMatchTypes`` in src/tir/op/op.cc), so a GPU computes ``h * 0.5 + 1.0``
# in float32 and rounds the result once. The Ascend vectoriser takes no conversion inside of a statement, so such a
# statement runs element by element there. One operation gives the same half in either type, as float32 has more than
# twice the digits (Figueroa, "When is double rounding innocuous?", 1995), so its number is written as a half.

_LARGEST = 65504.0
_SMALLEST = 2.0**-14
"""The halves between which a number loses no more than one rounding."""
_CHOICES = frozenset({"max", "min", "clamp", "abs"})
"""Rounding before or after them gives the same."""
_WRITTEN = ("T.float16(", "T.cast(")
_ONE_OPERATION = frozenset({2.0, 0.5, -0.5, -1.0})
"""The exponents of powers that are one operation or function."""


class Halves:
    """What a GPU makes of numbers in the expressions of a nest; ``constants``: names of plain numbers."""

    def __init__(self, reading: Reading, constants: Mapping[str, float]) -> None:
        self.reading = reading
        self.constants = constants
        self.floats = frozenset(name for name, value in constants.items() if not value.is_integer())

    def widened(self, value: Expr) -> bool:
        """Whether a number makes a GPU compute an expression of halves in float32."""
        if value.kind == "number":
            return self.reading.is_real(value)
        if value.kind in ("cast", "compare", "logic"):
            return False
        return any(self.widened(arg) for arg in (value.args[1:] if value.kind == "select" else value.args))

    def leaves_integers(self, value: Expr) -> bool:
        """Whether a float among the numbers, or a quotient, makes a GPU compute an expression of integers as floats."""
        if value.kind == "number":
            node = parsed(value.text)
            return is_float(node, self.floats) or (value.dynamic and self.reading.floats.holds(node))
        if value.kind in ("cast", "compare", "logic"):
            return False
        is_quotient = value.kind == "binary" and value.name == "/"
        return is_quotient or any(map(self.leaves_integers, value.args[1:] if value.kind == "select" else value.args))

    def whole(self, value: Expr, text: str) -> Expr:
        """A number as it is stored in a tile of integers; ``text`` says of which type."""
        size = self.known(value)
        return number(f"T.cast({value.text}, {text})") if math.isnan(size) else number(str(int(size)))

    def is_once(self, value: Expr) -> bool:
        """Whether halves are rounded where a GPU rounds, but for a number that is rounded itself."""
        if value.kind == "number" or not self.widened(value):
            return True
        if value.kind in ("select", "negative") or (value.kind == "call" and value.name in _CHOICES):
            return all(map(self.is_once, value.args[1:] if value.kind == "select" else value.args))
        if value.kind == "call" and value.name == "pow":
            return not self.widened(value.args[0]) and value.args[1].value in _ONE_OPERATION
        if value.kind != "binary" or value.name not in ("+", "-", "*", "/"):
            return False
        left, right = value.args
        return self._stays(left, value.name, 1.0) and self._stays(right, value.name, -1.0)

    def _stays(self, side: Expr, sign: str, power: float) -> bool:
        """Whether an operand of one operation is a half, or nearly one."""
        if side.kind != "number" or not self.reading.is_real(side):
            return not self.widened(side)
        size = abs(self.known(side))
        if sign in ("+", "-") or not size:
            return size <= _LARGEST
        smallest = 1.0 / _SMALLEST if sign == "/" and power < 0 else _LARGEST  # a divisor becomes its reciprocal
        return _SMALLEST <= size <= smallest

    def known(self, value: Expr) -> float:
        """The value of a number; NaN if it is not known."""
        found = value.value if value.value is not None else self.constants.get(value.text)
        return float("nan") if found is None else found

    def is_compared(self, value: Expr) -> bool:
        """Whether a side of a comparison is the same as a half as it is for a GPU."""
        if value.kind != "number" or not self.reading.is_real(value):
            return not self.widened(value)
        if "(" in value.text:
            return True  # T.infinity and the like
        try:
            return bool(struct.unpack("e", struct.pack("e", found := self.known(value)))[0] == found)
        except OverflowError:
            return False

    def written(self, value: Expr, dtype: str, text: str) -> Expr:
        """The expression with its numbers written in the element type ``dtype`` of the tile; ``text`` says which."""
        if value.kind == "number":
            is_given = value.dynamic or value.text.startswith(_WRITTEN)
            if is_given or (value.name != OWN and not self.reading.is_real(value)):
                return value
            made = f"T.float16({value.text})" if dtype == "float16" else f"T.cast({value.text}, {text})"
            return replace(value, name=OWN, text=made, node=None)
        if value.kind not in ("binary", "negative", "call"):
            return value
        return with_args(value, *(self.written(arg, dtype, text) for arg in value.args))

    def local_type(self, value: Expr, dtype: str) -> str:
        """The type of a name for a value, which a GPU does not round."""
        return "float32" if self.widened(value) else dtype
