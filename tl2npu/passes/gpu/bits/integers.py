"""Integers of a type, written as arithmetic that never leaves the numbers that they are.

A GPU computes ``(b >> 4) & 15`` of bytes in 8 bits, C++ in 32. So every value is written as the integer that it is, in
32 or 64 bits, with the interval that it lies in: bits that the type drops are dropped where the interval says that
there may be some, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.elementwise.tree import Expr, number, show
from tl2npu.source.signs import BITWISE

INT32 = (-(1 << 31), (1 << 31) - 1)
_INT64 = (-(1 << 63), (1 << 63) - 1)


class NoInteger(Exception):
    """The value is no integer that is understood, or leaves 64 bits."""


@dataclass(frozen=True, eq=False)
class Integer:
    """``expr``: the text; ``dtype``: the type that a GPU has it in; ``low``, ``high``: what it is at least and at most.

    ``widest``: the interval of all numbers on the way to it. ``of_bits``: made by an operator on bits. ``loads``: it
    reads elements. ``plain``: a number of Python, without a type of its own. ``sym``: of indices and sizes, the value.
    ``names``: the local names in it.
    """

    expr: Expr
    dtype: str
    low: int
    high: int
    widest: tuple[int, int]
    of_bits: bool = False
    loads: bool = False
    plain: bool = False
    sym: Sym | None = None
    names: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The text, without parentheses around it."""
        return show(self.expr)

    @property
    def is_literal(self) -> bool:
        """A number that is known."""
        return self.low == self.high and not self.loads

    def fits(self, interval: tuple[int, int]) -> bool:
        """Whether every value lies in an interval."""
        return interval[0] <= self.low and self.high <= interval[1]


def leaf(
    text: str, dtype: str, low: int, high: int, *, loads: bool = False, plain: bool = False, sym: Sym | None = None
) -> Integer:
    """A value that is written as it stands."""
    return Integer(number(text), dtype, low, high, (low, high), loads=loads, plain=plain, sym=sym)


def interval(dtype: str) -> tuple[int, int]:
    """The least and the largest value of an integer type; raises :class:`NoInteger` for any other type."""
    if not dtype.startswith(("int", "uint")) or not dtype.lstrip("uint").isdecimal():
        raise NoInteger(dtype)
    signed, bits = dtype.startswith("int"), int(dtype.lstrip("uint"))
    if bits > 32:
        raise NoInteger(dtype)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def bits_of(dtype: str) -> int:
    """How many bits a type has."""
    low, high = interval(dtype)
    return (high - low).bit_length()


def converted(value: Integer, dtype: str) -> Integer:
    """The value in another type: its lower bits, with their sign."""
    low, high = interval(dtype)
    if value.fits((low, high)):
        return replace(value, dtype=dtype)
    mask, half = high - low, -low  # half: what a signed type has below 0
    moved = _made("+", value, _literal(half)) if half else value
    cut = _made("&", moved, _literal(mask))
    found = _made("-", cut, _literal(half)) if half else cut
    return replace(found, dtype=dtype, low=low, high=high, of_bits=value.of_bits)


def combined(sign: str, left: Integer, right: Integer, known: Known | None = None) -> Integer:
    """``left sign right`` as TVM computes it: in the wider type, of two as wide as each other in the unsigned one.

    A number of Python has the type of the other side for an operator on bits, and 32 bits for any other: where that
    makes a difference, versions of TVM differ. ``known``: the interval of the result, if it has one of its own. Raises
    :class:`NoInteger` there, for other operators, and for a division that may be by 0.
    """
    typed = next((side.dtype for side in (left, right) if not side.plain), "int32")
    if sign in BITWISE:
        left, right = _typed(sign, left, right, typed), _typed(sign, right, left, typed)
    dtype = _common(left.dtype, right.dtype)
    both_plain = left.plain and right.plain
    left, right = converted(left, dtype), converted(right, dtype)
    if sign in ("<<", ">>"):
        right = _as_count(right, bits_of(dtype))
    if sign in ("//", "%") and right.low < 1:
        raise NoInteger(sign)
    if sign not in _INTERVALS:
        raise NoInteger(sign)
    found = _made(sign, left, right, known)
    if sign not in BITWISE and (left.plain or right.plain) and not found.fits(interval(typed)):
        raise NoInteger(sign)
    of_bits = found.of_bits or sign in BITWISE
    return converted(replace(found, dtype=dtype, of_bits=of_bits, plain=both_plain), dtype)


def inverted(value: Integer) -> Integer:
    """``~value``."""
    low, high = interval(value.dtype)
    found = _made("-", _literal(high if low == 0 else -1), value)
    return replace(found, dtype=value.dtype, of_bits=True)


def _typed(sign: str, side: Integer, other: Integer, dtype: str) -> Integer:
    """A number of Python in the type of the other side, whose upper bits leave nothing of it."""
    if not side.plain:
        return side
    low, high = interval(dtype)
    if sign == "&" and other.low >= 0 and not side.fits((low, high)):
        return replace(side, dtype=dtype, low=low, high=high)
    return replace(side, dtype=dtype)


def _common(left: str, right: str) -> str:
    if bits_of(left) != bits_of(right):
        return max(left, right, key=bits_of)
    return left if left.startswith("u") else right


def _as_count(value: Integer, bits: int) -> Integer:
    """A number of places: one that is not below the width has no meaning on a GPU either."""
    low, high = max(value.low, 0), min(value.high, bits - 1)
    if low > high:
        raise NoInteger(value.text)
    return replace(value, low=low, high=high)


def _literal(value: int) -> Integer:
    return Integer(number(str(value)), "int32", value, value, (value, value))


Known = tuple[int, int, Sym]
"""The least and the largest value of an expression that is one of indices and sizes, and that expression."""


def _made(sign: str, left: Integer, right: Integer, known: Known | None = None) -> Integer:
    low, high = _INTERVALS[sign](left, right)
    if known is not None:
        low, high = max(low, known[0]), min(high, known[1])
    widest = min(low, left.widest[0], right.widest[0]), max(high, left.widest[1], right.widest[1])
    if widest[0] < _INT64[0] or widest[1] > _INT64[1]:
        raise NoInteger(sign)
    sides = [_beside_bits(side) if sign in BITWISE else side.expr for side in (left, right)]
    return Integer(
        Expr("binary", sign, tuple(sides)),
        left.dtype,
        low,
        high,
        widest,
        left.of_bits or right.of_bits,
        left.loads or right.loads,
        sym=known[2] if known is not None else None,
        names=left.names | right.names,
    )


def _beside_bits(side: Integer) -> Expr:
    """TVM's operators on bits take a number of Python for an int32, beside an int64 too."""
    return number(f"T.int64({side.low})") if side.is_literal and not side.fits(INT32) else side.expr


_Ends = Callable[[Integer, Integer], tuple[int, int]]


def _at_corners(apply: Callable[[int, int], int]) -> _Ends:
    """The interval of an operation that has its extremes at ends of the operands' intervals."""

    def ends(left: Integer, right: Integer) -> tuple[int, int]:
        found = [apply(a, b) for a, b in product((left.low, left.high), (right.low, right.high))]
        return min(found), max(found)

    return ends


def _and(left: Integer, right: Integer) -> tuple[int, int]:
    tops = [side.high for side in (left, right) if side.low >= 0]
    return (0, min(tops)) if tops else _or(left, right)


def _or(left: Integer, right: Integer) -> tuple[int, int]:
    """Of two's complements: no more bits than the longer one has."""
    ends = (left.low, left.high, right.low, right.high)
    bits = max((end if end >= 0 else ~end).bit_length() for end in ends)
    return (0 if min(ends) >= 0 else -(1 << bits)), (1 << bits) - 1


def _mod(left: Integer, right: Integer) -> tuple[int, int]:
    return 0, min(right.high - 1, left.high) if left.low >= 0 else right.high - 1


_INTERVALS: Mapping[str, _Ends] = {
    "+": _at_corners(lambda a, b: a + b),
    "-": _at_corners(lambda a, b: a - b),
    "*": _at_corners(lambda a, b: a * b),
    "//": _at_corners(lambda a, b: a // b),
    "%": _mod,
    "&": _and,
    "|": _or,
    "^": _or,
    "<<": _at_corners(lambda a, b: a << b),
    ">>": _at_corners(lambda a, b: a >> b),
}
