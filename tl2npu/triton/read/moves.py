"""By how much integers, pointers and block pointers move from turn to turn of a loop."""

from __future__ import annotations

from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.tile.expr import Index
from tl2npu.triton.read.values import BlockPointer, Pointer, Tile, Value, integer


def marked(name: str, value: Value) -> Value:
    """The value with a variable in it that stands for how far it has moved."""
    mark = var(f"${name}")
    match value:
        case Pointer():
            return Pointer(value.param, value.offset + mark, value.shape)
        case BlockPointer():
            offsets = tuple(part + var(f"${name}.{place}") for place, part in enumerate(value.offsets))
            return BlockPointer(value.base, value.shape, value.strides, offsets, value.block)
    number = value.integer if isinstance(value, Tile) else integer(value)
    if number is not None and not isinstance(value, bool):
        return Tile(value.shape if isinstance(value, Tile) else (), Index(number + mark))
    return value


def difference(old: Value, new: Value | None) -> Sym | tuple[Sym, ...] | None:
    """How far it is from one value to the other; None if they do not differ by an integer."""
    match old, new:
        case Pointer(), Pointer() if old.param == new.param and old.shape == new.shape:
            return new.offset - old.offset
        case BlockPointer(), BlockPointer() if old.base == new.base and old.strides == new.strides:
            return tuple(one - other for one, other in zip(new.offsets, old.offsets, strict=True))
        case Tile(), Tile() | int() if old.integer is not None:
            number = new.integer if isinstance(new, Tile) and new.shape == old.shape else integer(new)
            return None if number is None else number - old.integer
    return const(0) if old == new else None


def shifted(value: Value, by: Sym | tuple[Sym, ...], turns: Sym) -> Value:
    """The value after so many turns that move it ``by`` that much each."""
    match value:
        case Pointer() if isinstance(by, Sym):
            return Pointer(value.param, value.offset + by * turns, value.shape)
        case BlockPointer() if isinstance(by, tuple):
            offsets = tuple(part + more * turns for part, more in zip(value.offsets, by, strict=True))
            return BlockPointer(value.base, value.shape, value.strides, offsets, value.block)
    number = value.integer if isinstance(value, Tile) else integer(value)
    if number is not None and isinstance(by, Sym):
        return Tile(value.shape if isinstance(value, Tile) else (), Index(number + by * turns))
    return value
