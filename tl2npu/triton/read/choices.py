"""Scalars that conditions decide, as integers: ``where(a < b, x, y)`` is ``y + (x - y) * min(1, max(0, b - a))``.

So bounds of loops, starts of addresses and divisions may come from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tl2npu.kernel.symbolic import Opaque, Sym, const, opaque
from tl2npu.tile.expr import Call, Const, Expr, Index, Load, axis_of, loads, walk
from tl2npu.triton.read import build
from tl2npu.triton.read.masks import positive
from tl2npu.triton.read.ranges import Ranges, largest, smallest
from tl2npu.triton.read.values import Tile, Value

TRUNCATED = {"floordiv": "truncdiv", "mod": "truncmod"}
"""Division of integers in Triton, which cuts off the decimals, and the remainder that belongs to it."""


def scalar(value: Value) -> Sym | None:
    """The scalar integer that a value is; None for floats, tiles and data in buffers."""
    if isinstance(value, bool | int):
        return const(int(value))
    return integer(value.expr) if isinstance(value, Tile) and not value.shape else None


def decided(test: Expr, yes: Value, no: Value, lets: Mapping[str, Sym]) -> Sym | None:
    """The integer that a name has behind an ``if``; ``lets``: what the names that its branches give stand for."""
    one, other = (_written_out(scalar(value), lets) for value in (yes, no))
    if one is None or other is None:
        return None
    return integer(Call("select", (test, Index(one), Index(other)), "int32"))


def _written_out(value: Sym | None, lets: Mapping[str, Sym]) -> Sym | None:
    while value is not None and value.names & lets.keys():
        value = value.substitute(lets)
    return value


def integer(expr: Expr, element: Callable[[Load], Sym | None] = lambda load: None) -> Sym | None:
    """An expression as one integer; ``element``: what elements of buffers are."""

    def _integer(part: Expr) -> Sym | None:
        return integer(part, element)

    match expr:
        case Load():
            return element(expr)
        case Index():
            return expr.value
        case Const(value=bool() | int()):
            return const(int(expr.value))
        case Call(op="cast", args=(inner,), dtype="int32" | "int64"):
            return _integer(inner) if inner.dtype != "bool" else indicator(inner)
        case Call(op="select", args=(test, one, other)) if expr.dtype in ("int32", "int64"):
            chosen = indicator(test), _integer(one), _integer(other)
            holds, yes, no = chosen
            return None if holds is None or yes is None or no is None else no + (yes - no) * holds
        case Call(op="truncdiv" | "truncmod", args=(left, Index(value=den))):
            num = _integer(left)
            return None if num is None else opaque(expr.op, num, den)
        case Call(op="add" | "sub" | "mul" | "min" | "max", args=(left, right)) if expr.dtype in ("int32", "int64"):
            a, b = _integer(left), _integer(right)
            if a is None or b is None:
                return None
            made = {"add": a + b, "sub": a - b, "mul": a * b}
            return made[expr.op] if expr.op in made else (smallest if expr.op == "min" else largest)(a, b)
    return None


def indicator(test: Expr) -> Sym | None:
    """1 where a condition on integers holds, 0 where it does not."""
    more = positive(test)
    if more is not None:
        return smallest(const(1), largest(const(0), more))
    if isinstance(test, Const):
        return const(int(bool(test.value)))
    if isinstance(test, Call) and test.op in ("eq", "ne"):
        one, other = map(integer, test.args)
        if one is None or other is None:
            return None
        apart = smallest(const(1), largest(one - other, other - one))
        return apart if test.op == "ne" else const(1) - apart
    parts = [indicator(arg) for arg in test.args] if isinstance(test, Call) and test.op in ("and", "or", "not") else []
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts) or not isinstance(test, Call):
        return None
    if test.op == "not":
        return const(1) - known[0]
    return known[0] * known[1] if test.op == "and" else largest(known[0], known[1])


def truncated(op: str, left: Value, right: Value, ranges: Ranges) -> Tile | None:
    """A division of integers, which may be negative, by a scalar; None where that may be less than 1.

    Quotients of loaded integers are good for places in memory only (:func:`integer`).
    """
    tile, den = build.tile(left), scalar(right)
    if tile is None or den is None or not ranges.at_least_zero(den - 1):
        return None
    num = scalar(left) if not tile.shape else tile.integer
    if num is not None:
        return Tile(tile.shape, Index(opaque(TRUNCATED[op], num, den)))
    wide = tile.dtype in ("int32", "int64")
    return Tile(tile.shape, Call(TRUNCATED[op], (tile.expr, Index(den)), tile.dtype)) if wide else None


def truncates(value: Expr) -> bool:
    """True for a division of that kind which differs from element to element: vectors have none."""
    for part in walk(value):
        if isinstance(part, Call) and part.op in TRUNCATED.values() and any(True for _ in loads(part)):
            return True
        atoms = part.value.atoms() if isinstance(part, Index) else ()
        found = (atom for atom in atoms if isinstance(atom, Opaque) and atom.head in TRUNCATED.values())
        if any(axis_of(name) is not None for atom in found for name in atom.names):
            return True
    return False


def apart(one: Value, other: Value) -> Tile | None:
    """A tile of the kind that both branches give a name, where they leave it in different memory; None where they do
    not, or give it integers that conditions may decide."""
    tiles = [build.tile(value) for value in (one, other)]
    data = [tile for tile in tiles if tile is not None and any(True for _ in loads(tile.expr))]
    if one == other or None in tiles or not data or any(len(tile.shape) > 2 for tile in data):
        return None
    first, last = data[0], data[-1]
    return first if (first.shape, first.dtype) == (last.shape, last.dtype) else None
