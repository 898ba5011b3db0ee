"""Numbers beside halves: where a GPU computes in float32, and how a number is written in float16.

A Python float is a float32 for TVM (``BinaryOpMatchTypes`` in src/tir/op/op.cc), so a GPU computes ``h * 0.5 + 1.0`` in
float32 and rounds the result once. The Ascend vectoriser takes no conversion inside of a statement, so such a statement
runs element by element there. One operation gives the same half in either type, as float32 has more than twice the
digits (Figueroa, "When is double rounding innocuous?", 1995), so its number is written as a half.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import replace

from tl2npu.kernel.numbers import is_float
from tl2npu.passes.gpu.elementwise.reading import OWN, Reading
from tl2npu.passes.gpu.elementwise.tree import Expr, number, parsed, with_args

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
