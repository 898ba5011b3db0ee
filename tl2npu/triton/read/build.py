"""Operators on values: types, broadcasting, folding of constants."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from tl2npu.dialects.functions import IN_FLOATS
from tl2npu.kernel.symbolic import Mod, Sym, const
from tl2npu.tile.expr import COMPARISONS, LOGIC, Call, Const, Expr, Index, Load, Opaque, axis, substituted
from tl2npu.triton.read.ranges import floored, largest, smallest
from tl2npu.triton.read.values import Shape, Tile
from tl2npu.triton.refused import Refused, Unequal

_FOLDS: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": max,
    "min": min,
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {name: getattr(operator, name) for name in COMPARISONS}


def is_float(dtype: str) -> bool:
    """True for floating-point types."""
    return dtype.startswith(("float", "bfloat"))


def tile(value: object) -> Tile | None:
    """A value as a tile of no axis, numbers too; None for what has no elements."""
    if isinstance(value, Tile):
        return value
    if isinstance(value, bool):
        return Tile((), Const(value, "bool"))
    if isinstance(value, int):
        return Tile((), Index(const(value)))
    if isinstance(value, float):
        return Tile((), Const(value, "float32"))
    return None


def expanded(value: Tile, place: int) -> Tile:
    """With an axis of extent 1 put in at ``place``."""
    shift = {f"@{number}": axis(number + 1) for number in range(place, len(value.shape))}
    shape = (*value.shape[:place], const(1), *value.shape[place:])
    return Tile(shape, substituted(value.expr, shift) if shift else value.expr)


def transposed(value: Tile) -> Tile:
    """The two axes exchanged."""
    return Tile((value.shape[1], value.shape[0]), substituted(value.expr, {"@0": axis(1), "@1": axis(0)}))


def broadcast_shape(shapes: list[Shape], line: int) -> Shape:
    """The shape that tiles of these shapes have together."""
    rank = max(map(len, shapes))
    found: list[Sym] = []
    for place in range(rank):
        extents = [shape[place - rank + len(shape)] for shape in shapes if place - rank + len(shape) >= 0]
        wide = [extent for extent in extents if extent.constant != 1]
        if other := [extent for extent in wide if extent != wide[0]]:
            raise Unequal(line, wide[0], other[0])
        found.append(wide[0] if wide else const(1))
    return tuple(found)


def broadcast(value: Tile, shape: Shape) -> Tile:
    """The tile with axes added in front and axes of extent 1 repeated."""
    more = len(shape) - len(value.shape)
    if more < 0:
        raise ValueError("broadcast to a smaller rank")
    moved: dict[str, Sym | int] = {}
    for number, extent in enumerate(value.shape):
        if extent.constant == 1 and shape[number + more].constant != 1:
            moved[f"@{number}"] = 0
        elif more:
            moved[f"@{number}"] = axis(number + more)
    return Tile(shape, substituted(value.expr, moved) if moved else value.expr)


def promoted(values: list[Tile], weak: list[bool], division: bool = False) -> str:
    """The type in which Triton computes (``computation_type_impl`` of ``triton/language/semantic.py``, v3.8.0).

    Numbers of Python follow what they meet; scalars that a launch passes, or that are reduced, do not.
    """
    dtype, is_weak = values[0].dtype, weak[0]
    for value, next_weak in zip(values[1:], weak[1:], strict=True):
        dtype = _promoted_pair((dtype, is_weak), (value.dtype, next_weak), division)
        is_weak = is_weak and next_weak
    return dtype


def _promoted_pair(one: tuple[str, bool], other: tuple[str, bool], division: bool) -> str:
    halves = ("float16", "bfloat16")
    if one[1] != other[1]:
        (number, _), (tile_type, _) = (one, other) if one[1] else (other, one)
        if _kind(number) <= _kind(tile_type):
            return "float32" if division and tile_type in halves else tile_type
    types = {one[0], other[0]}
    for wide in ("float64", "float32"):
        if wide in types:
            return wide
    if "float16" in types:
        return "float32" if division else "float16"
    if "bfloat16" in types:
        return "bfloat16" if len(types) == 1 and not division else "float32"
    floats = sorted(name for name in types if is_float(name))
    if floats:
        return floats[0] if len(floats) == 1 else "float16"
    widths = sorted(types, key=lambda name: (int("".join(c for c in name if c.isdigit()) or 1), name.startswith("u")))
    return widths[-1]


def _is_number(operand: object) -> bool:
    """True for numbers that are known when Triton compiles."""
    if not isinstance(operand, Tile):
        return True
    return not operand.shape and _weak(operand.expr)


def _weak(expr: Expr) -> bool:
    match expr:
        case Const():
            return True
        case Index():
            return expr.value.constant is not None
        case Opaque():
            return expr.weak
        case Call():
            return expr.op != "cast" and all(_weak(arg) for arg in expr.args)
        case _:
            return False


def _kind(dtype: str) -> int:
    return 2 if is_float(dtype) else 0 if dtype == "bool" else 1


def cast(value: Tile, dtype: str) -> Tile:
    """The tile converted."""
    if value.dtype == dtype:
        return value
    expr = value.expr
    if isinstance(expr, Const):
        number = rounded(expr.value, expr.dtype)
        if isinstance(number, float) and not is_float(dtype) and math.isfinite(number):
            return Tile(value.shape, Const(rounded(int(number), dtype), dtype))
        return Tile(value.shape, Const(float(number) if is_float(dtype) else rounded(number, dtype), dtype))
    if isinstance(expr, Index):
        if is_float(dtype):
            if expr.value.constant is not None:
                return Tile(value.shape, Const(float(expr.value.constant), dtype))
            return Tile(value.shape, Call("cast", (expr,), dtype))
        return Tile(value.shape, Index(expr.value)) if dtype in ("int32", "int64") else _call_cast(value, dtype)
    return _call_cast(value, dtype)


def truth_of_byte(value: Tile) -> Tile:
    """A tile of bytes, each 0 or not, as conditions: instructions compare floats, and float16 has all bytes."""
    return Tile(value.shape, Call("ne", (Call("cast", (value.expr,), "float16"), Const(0.0, "float16")), "bool"))


def truth_as_byte(value: Tile) -> Tile:
    """A tile of conditions as bytes, 1 where one holds."""
    if isinstance(value.expr, Const):
        return Tile(value.shape, Const(int(value.expr.value), "uint8"))
    number = Call("select", (value.expr, Const(1.0, "float16"), Const(0.0, "float16")), "float16")
    return Tile(value.shape, Call("cast", (number,), "uint8"))


def rounded(value: float | int | bool, dtype: str) -> float | int | bool:
    """The number that an element of this type holds in its place."""
    if dtype == "bool":
        return bool(value)
    if dtype in ("float16", "bfloat16") and math.isfinite(value):
        sign, (part, power) = math.copysign(1.0, value), math.frexp(abs(value))
        digits, least, largest = (11, -13, 65504.0) if dtype == "float16" else (8, -125, 3.3895313892515355e38)
        unit = math.ldexp(1.0, max(power, least) - digits)
        near = round(math.ldexp(part, power) / unit) * unit
        return sign * (near if near <= largest else math.inf)
    if isinstance(value, int) and dtype.startswith(("int", "uint")):
        bits = int(dtype.lstrip("uint"))
        low = 0 if dtype.startswith("u") else -(1 << (bits - 1))
        return (value - low) % (1 << bits) + low
    return value


def _call_cast(value: Tile, dtype: str) -> Tile:
    return Tile(value.shape, Call("cast", (value.expr,), dtype))


def operation(op: str, operands: list[object], line: int) -> Tile:
    """An element-wise operator on values; Python numbers take the type of the tile that they meet."""
    tiles: list[Tile] = []
    for operand in operands:
        found = tile(operand)
        if operand is None:
            way = "ask whether it is None, as `if x_ptr is not None:` in the kernel, or pass a tensor"
            raise Refused("TL543", line, f"`{op}` of None, which the launch passes or leaves out", way)
        if found is None:
            raise Refused("TL543", line, f"`{op}` of something that is neither a number nor a tile")
        tiles.append(found)
    shape = broadcast_shape([item.shape for item in tiles], line)
    if (folded := _of_sizes(op, tiles, shape)) is not None:
        return folded
    dtype = _computed(op, tiles, operands)
    if op in ("floordiv", "mod") and is_float(dtype):
        raise Refused("TL530", line, f"`{'//' if op == 'floordiv' else '%'}` of floats")
    truths = all(item.dtype == "bool" for item in tiles)
    logic = op in LOGIC or (op in ("bitand", "bitor", "bitxor", "mul") and truths)
    kept = [logic or (op == "select" and number == 0) for number in range(len(tiles))]
    args = [_as(item, "" if own else dtype, shape) for item, own in zip(tiles, kept, strict=True)]
    if logic:
        return Tile(shape, _folded_logic({"bitand": "and", "mul": "and", "bitor": "or"}.get(op, op), args))
    return Tile(shape, _folded(op, args, "bool" if op in COMPARISONS else dtype))


def _of_sizes(op: str, tiles: list[Tile], shape: Shape) -> Tile | None:
    """An operator on integers that sizes and places decide, as one of them; None for others."""
    integers = [value for item in tiles if (value := item.integer) is not None]
    folded = _of_integers(op, integers) if len(integers) == len(tiles) else None
    if folded is None:
        return None
    if isinstance(folded, bool):
        return Tile(shape, Const(folded, "bool"))
    wide = [broadcast(Tile(item.shape, Index(value)), shape) for item, value in zip(tiles, integers, strict=True)]
    again = _of_integers(op, [value for item in wide if (value := item.integer) is not None])
    return Tile(shape, Index(again)) if isinstance(again, Sym) else None


def _computed(op: str, tiles: list[Tile], operands: list[object]) -> str:
    """The type that an operator computes in."""
    weak = [_is_number(operand) for operand in operands]
    first = 1 if op == "select" else 0
    dtype = promoted(tiles[first:], weak[first:], op in ("div", "mod"))
    if op in ("max", "min") and dtype == "bfloat16":
        return "float32"
    return "float32" if (op in IN_FLOATS or op == "div") and not is_float(dtype) else dtype


def _as(item: Tile, dtype: str, shape: Shape) -> Expr:
    """An operand in an element type and of a shape; without a type as it is."""
    if dtype and isinstance(item.expr, Const) and not isinstance(item.expr.value, bool):
        return Const(float(item.expr.value) if is_float(dtype) else item.expr.value, dtype)
    return broadcast(cast(item, dtype) if dtype else item, shape).expr


def _rejoined(found: Sym) -> Sym:
    """``n`` in the place of ``n // d * d + n % d``."""
    for monomial, factor in found.terms:
        if len(monomial) == 1 and isinstance(rest := monomial[0], Mod):
            shorter = found - (rest.num // rest.den * rest.den + Sym.of({monomial: 1}) - rest.num) * factor
            if len(shorter.terms) < len(found.terms):
                return shorter
    return found


def _of_integers(op: str, values: list[Sym]) -> Sym | bool | None:
    match op, values:
        case "add", [one, other]:
            return _rejoined(one + other)
        case "sub", [one, other]:
            return one - other
        case "mul", [one, other]:
            return one * other
        case "floordiv", [one, other] if not other.is_zero:
            return floored(one, other)
        case "mod", [one, other] if not other.is_zero:
            return one % other
        case "neg", [one]:
            return -one
        case (("max" | "min"), [one, other]):
            return largest(one, other) if op == "max" else smallest(one, other)
        case (("lt" | "le" | "gt" | "ge" | "eq" | "ne"), [one, other]):
            difference = (one - other).constant
            return _COMPARE[op](difference, 0) if difference is not None else None
        case _:
            return None


def _folded(op: str, args: list[Expr], dtype: str) -> Expr:
    numbers = [arg.value for arg in args if isinstance(arg, Const) and not isinstance(arg.value, bool)]
    if len(numbers) == len(args):
        if op in _FOLDS:
            return Const(_FOLDS[op](numbers[0], numbers[1]), dtype)
        if op in _COMPARE:
            return Const(_COMPARE[op](numbers[0], numbers[1]), "bool")
        if op == "neg":
            return Const(-numbers[0], dtype)
        if op == "div" and numbers[1] and not math.isinf(numbers[0]):
            return Const(numbers[0] / numbers[1], dtype)
    if op == "select" and isinstance(args[0], Const):
        return args[1] if args[0].value else args[2]
    if op == "add" and isinstance(args[0], Const) and args[0].value == 0 and not is_float(dtype):
        return args[1]
    return Call(op, tuple(args), dtype)


def _folded_logic(op: str, args: list[Expr]) -> Expr:
    if op == "not":
        return Const(not args[0].value, "bool") if isinstance(args[0], Const) else Call(op, tuple(args), "bool")
    known = [arg for arg in args if isinstance(arg, Const)]
    open_ = [arg for arg in args if not isinstance(arg, Const)]
    if op == "and":
        if any(not arg.value for arg in known):
            return Const(False, "bool")
        if not open_:
            return Const(True, "bool")
        return open_[0] if len(open_) == 1 else Call("and", tuple(open_), "bool")
    if op == "or":
        if any(arg.value for arg in known):
            return Const(True, "bool")
        if not open_:
            return Const(False, "bool")
        return open_[0] if len(open_) == 1 else Call("or", tuple(open_), "bool")
    return Call(op, tuple(args), "bool")


def integer_type(dtype: str) -> str:
    """The type in which Triton reduces integers of a type: at least 32 bits; "" for floats."""
    return "" if is_float(dtype) else dtype if dtype in ("int64", "uint32", "uint64") else "int32"


def most(expr: Expr, sizes: Mapping[str, float]) -> float:
    """What the size of an integer is at most, by its type and by what it is made of; infinite for a float.

    ``sizes``: those of integers in buffers, as far as they are known.
    """
    bits = int(expr.dtype.lstrip("uint") or 0) if "int" in expr.dtype else 0
    limit = 1.0 if expr.dtype == "bool" else 2.0**bits if "int" in expr.dtype else math.inf
    if isinstance(expr, Const):
        return min(limit, abs(expr.value))
    if isinstance(expr, Index) and expr.value.constant is not None:
        return abs(expr.value.constant)
    if isinstance(expr, Load):
        return min(limit, sizes.get(expr.buffer, limit))
    if isinstance(expr, Call) and expr.op in ("cast", "select"):
        return min(limit, max(most(arg, sizes) for arg in expr.args[expr.op == "select" :]))
    return limit
