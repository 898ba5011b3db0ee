"""What the parser of a prim_func makes of values: which Python operators it has for which of them.

Source: ``tilelang/language/parser/operation.py``, TVM's ``evaluator.py`` and the overloaded operators of ``PrimExpr``;
each line was tried with a kernel.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal

import libcst as cst

from tl2npu.kernel.parser.scalar_types import Type, exact, family, holds, mismatch, of_sum, takes_number

Kind = Literal[
    "number",  # a Python int, float or bool
    "text",
    "none",
    "items",  # a tuple or a list
    "odd",  # what no name of a kernel can stand for: a dict, a function, an ellipsis
    "device",  # an expression that only the device evaluates
    "cell",  # a variable made by alloc_var
    "buffer",
    "region",  # a slice of a buffer
    "frame",  # what `for` and `with` take; ``dtype`` is that of the variable
    "done",  # a statement of the kernel, which has no value
    "unknown",
]


@dataclass(frozen=True)
class Parsed:
    """One value: ``dtype`` of a number, an expression, or the elements of a buffer; ``rank`` of a buffer.

    ``dtype`` is ``int``, ``float`` or ``bool`` for a number of Python. Of an expression it is an element type, or
    ``int*`` and ``float*`` where the width is not known. ``number``: its value, if that is known.
    """

    kind: Kind
    dtype: str = ""
    items: tuple[Parsed, ...] | None = None
    rank: int | None = None
    number: float | None = field(default=None, compare=False)

    @property
    def type(self) -> Type:
        """Whether it is an integer, a float or a condition."""
        return family(self.dtype)

    @property
    def own(self) -> str:
        """Its element type as an expression, of a number of Python too; its family where the width is not known."""
        large = self.dtype == "int" and self.number is not None and not holds("int32", self.number)
        return "int64" if large else exact(self.dtype) or self.dtype

    @property
    def on_device(self) -> bool:
        """True for what only the device evaluates."""
        return self.kind in ("device", "cell")

    @property
    def is_number(self) -> bool:
        """An int or a float where a condition is wanted."""
        return self.kind in ("number", "device", "cell") and self.type in ("int", "float")


UNKNOWN = Parsed("unknown")
NONE = Parsed("none")
TEXT = Parsed("text")
ODD = Parsed("odd")
DONE = Parsed("done")
SOME_ITEMS = Parsed("items")
TILES = ("buffer", "region")
WIDE = "int64"
"""The type of an index that no other index of a copy has."""

_ARITHMETIC: Mapping[type[cst.BaseBinaryOp], Callable[[float, float], float]] = {
    cst.Add: operators.add,
    cst.Subtract: operators.sub,
    cst.Multiply: operators.mul,
    cst.Divide: operators.truediv,
    cst.FloorDivide: operators.floordiv,
    cst.Modulo: operators.mod,
}
BITS = (cst.BitAnd, cst.BitOr, cst.BitXor, cst.LeftShift, cst.RightShift)


class Stop(Exception):
    """The parser stops, or reads something else; the text says what, after the expression."""


def of_python(value: object) -> Parsed:
    """A value that the factory has; None counts as unknown, since such a name has a number for other callers."""
    if isinstance(value, bool):
        return Parsed("number", "bool")
    if isinstance(value, (int, float)):
        return Parsed("number", "int" if isinstance(value, int) else "float", number=value)
    if isinstance(value, str):
        return TEXT
    if isinstance(value, (tuple, list)):
        return Parsed("items", items=tuple(map(of_python, value)))
    return UNKNOWN


def joined(left: Parsed, right: Parsed) -> Parsed:
    """A value that is one of two."""
    if left == right:
        return left if left.number == right.number else replace(left, number=None)
    if left.kind == right.kind and left.kind in ("number", "device"):
        alike = left.kind == "device" and left.type == right.type and left.type in ("int", "float")
        return Parsed(left.kind, f"{left.type}*" if alike else "")
    return UNKNOWN


def wider(*parts: Parsed) -> str:
    """The type of a sum; of numbers of Python one of Python's types."""
    if all(part.kind == "number" for part in parts):
        types = {part.type for part in parts}
        return "float" if "float" in types else "" if "" in types else "int"
    return reduce(of_sum, (part.own for part in parts))


def assigned(value: Parsed) -> Parsed:
    """What a name stands for behind ``name = value``: numbers become variables of the device."""
    if value.kind in ("none", "odd", "done", "region"):
        raise Stop("cannot be given to a name")
    if value.kind in ("number", "text", "cell"):
        return Parsed("device", value.own, number=value.number) if value.kind != "text" else Parsed("device")
    return value


def binary(operator: cst.BaseBinaryOp, left: Parsed, right: Parsed) -> Parsed:
    """``left operator right``."""
    both = (left, right)
    if any(part.kind in TILES for part in both):
        raise Stop("uses a whole tile: index an element")
    if type(operator) is cst.MatrixMultiply and not any(part.kind == "unknown" for part in both):
        raise Stop("is not supported for numbers")
    if any(part.on_device for part in both):
        if any(part.kind in ("none", "text", "items", "odd", "done") for part in both):
            raise Stop("has an operand that is not a number")
        if type(operator) is cst.Power:
            raise Stop("is a power, which a kernel does not support: multiply, or call `T.pow`")
        types = {part.type for part in both}
        if type(operator) is cst.Divide and types <= {"int", "bool"}:
            raise Stop("divides integers: write `//`, or convert an operand with `T.float32`")
        if isinstance(operator, (cst.FloorDivide, cst.Modulo, *BITS)) and "float" in types:
            raise Stop("applies an integer operator to a float")
        if isinstance(operator, BITS) and types == {"bool"}:
            return Parsed("device", "bool")
        whole = isinstance(operator, (cst.FloorDivide, cst.Modulo, *BITS)) and not types & {"bool"}
        return Parsed("device", wider(*both) or ("int*" if whole else ""), number=_folded(operator, left, right))
    if all(part.kind == "number" for part in both):
        found = "float" if type(operator) is cst.Divide else wider(*both)
        return Parsed("number", found, number=_folded(operator, left, right))
    if all(part.kind == "items" for part in both) and type(operator) is cst.Add:
        known = left.items is not None and right.items is not None
        return Parsed("items", items=(*(left.items or ()), *(right.items or ())) if known else None)
    return SOME_ITEMS if left.kind == "items" and right.kind == "number" else UNKNOWN


def _folded(operator: cst.BaseBinaryOp, left: Parsed, right: Parsed) -> float | None:
    """The value of arithmetic between two numbers that are known."""
    compute = _ARITHMETIC.get(type(operator))
    if compute is None or left.number is None or right.number is None:
        return None
    try:
        return compute(left.number, right.number)
    except ArithmeticError:
        return None


def unary(operator: cst.BaseUnaryOp, part: Parsed) -> Parsed:
    """``-x``, ``+x``, ``~x``; ``not x`` is a matter of conditions."""
    if part.kind in TILES:
        raise Stop("uses a whole tile: index an element")
    if part.on_device:
        if type(operator) is cst.Plus:
            raise Stop("has a unary `+`, which a kernel does not support")
        if type(operator) is cst.Minus and (part.type == "bool" or part.dtype.startswith("uint")):
            raise Stop("negates a condition" if part.type == "bool" else f"negates a {part.dtype}: subtract it from 0")
        if type(operator) is cst.BitInvert and part.type == "bool":
            raise Stop("is always true in the generated code: write `not`")
        if type(operator) is cst.BitInvert and part.type == "float":
            raise Stop("applies an integer operator to a float")
    if part.kind != "number" and not part.on_device:
        return UNKNOWN
    value = part.number
    if value is not None and type(operator) is not cst.Plus:
        value = -value if type(operator) is cst.Minus else ~value if isinstance(value, int) else None
    return Parsed("device" if part.on_device else "number", part.dtype, number=value)


def compared(operator: cst.BaseCompOp, left: Parsed, right: Parsed) -> Parsed:
    """``left operator right``, one comparison."""
    if isinstance(operator, (cst.Is, cst.IsNot)):
        return Parsed("number", "bool")
    if isinstance(operator, (cst.In, cst.NotIn)):
        if left.on_device or any(item.on_device for item in right.items or ()):
            raise Stop("compares objects, not their values: write comparisons with `or`")
        return Parsed("number", "bool") if UNKNOWN not in (left, right) else Parsed("unknown", "bool")
    if any(part.kind in TILES for part in (left, right)):
        raise Stop("compares a whole tile: index an element")
    if left.on_device or right.on_device:
        if any(part.kind in ("none", "text", "items", "odd") for part in (left, right)):
            raise Stop("compares a run-time number with something that is not a number")
        return Parsed("device", "bool")
    if "unknown" in (left.kind, right.kind):
        return Parsed("unknown", "bool")
    return Parsed("number", "bool")


def types_differ(left: Parsed, right: Parsed) -> str:
    """What the parser does not compare, as it converts nothing there; empty for what it compares."""
    if not left.on_device and not right.on_device:
        return ""
    for number, expression, is_left in ((left, right, True), (right, left, False)):
        if number.kind == "number":
            fits = not number.type or takes_number(expression.dtype, number.type, is_left)
            return "" if fits else f"compares {named(expression.dtype)} with {named(number.type)}"
    return f"compares {named(left.dtype)} with {named(right.dtype)}" if mismatch(left.dtype, right.dtype) else ""


def named(dtype: str) -> str:
    """A type with its article."""
    name = {"int": "integer", "int*": "integer"}.get(dtype, dtype.rstrip("*"))
    return f"an {name}" if name.startswith("int") else f"a {name}"
