"""Loads and stores: pointers and masks as regions of row-major tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tl2npu.kernel.sizes import FILLED, ITEM_SIZE
from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.tile.expr import Const, Expr, Index, Load, axis, axis_of, loads, substituted
from tl2npu.tile.ir import AtomicAdd, For, If, Let, Map, Move, Region, Stmt
from tl2npu.tile.unstored import Beyond
from tl2npu.triton.read import gathers
from tl2npu.triton.read.build import broadcast, cast, is_float, operation, truth_as_byte, truth_of_byte
from tl2npu.triton.read.choices import indicator
from tl2npu.triton.read.masks import conjunction, positive
from tl2npu.triton.read.spec import Again
from tl2npu.triton.read.state import Places, State
from tl2npu.triton.read.values import BlockPointer, Pointer, Shape, Tile
from tl2npu.triton.read.views import Placed, inside_always, names, place, unwrapped
from tl2npu.triton.refused import Below, Refused

_SHAPES = frozenset({"TL520", "TL521", "TL522", "TL523"})


@contextmanager
def accessed(pointer: Pointer | BlockPointer) -> Iterator[None]:
    """Says of which tensor it is that an access does not fit its shape."""
    try:
        yield
    except Refused as refused:
        param = pointer.param if isinstance(pointer, Pointer) else pointer.base.param
        refused.tensor = refused.tensor or (param if refused.code in _SHAPES else "")
        raise


def load(
    state: State,
    node: object,
    pointer: Pointer | BlockPointer,
    mask: Tile | None,
    other: object,
    check: tuple[int, ...],
    into: str | None = None,
) -> Tile:
    """The value of ``tl.load``; ``into``: the tile that it goes to, in the order of the tensor's memory."""
    pointer, mask = _plain(state, pointer, mask, check)
    dtype, truth = state.spec.tensors[pointer.param].held, state.spec.tensors[pointer.param].dtype == "bool"
    state.used.add(pointer.param)
    if gathers.by_rows(state, pointer):
        return _gathered(state, node, pointer, mask, other, into)
    try:
        placed = place(state, pointer, mask, reads=True)
    except Below as below:
        return _gathered(state, node, pointer, mask, other, into, below)
    except Refused:
        if (single := _integer_where(state, pointer, mask, other)) is not None:
            return single
        raise
    masked = bool(placed.rest) or not all(inside_always(state, condition) for condition in placed.edge)
    if not placed.order and not dtype.startswith(("float", "bfloat")):
        loaded = _integer_where(state, pointer, mask, other) if masked else _integer(state, pointer, placed)
        if loaded is None:
            raise state.refuse("TL522", "a masked load of a single integer")
        single = broadcast(Tile((), Index(loaded)), pointer.shape) if isinstance(loaded, Sym) else loaded
        return operation("ne", [single, 0], state.line) if truth else single
    shape = tuple(pointer.shape[number] for number in placed.order)
    buffer = into if into is not None else state.target(node, "in", shape, dtype)
    empty = 0.0 if dtype.startswith(("float", "bfloat")) else 0
    beyond = operation(
        "add", [int(other or 0) if isinstance(other, bool) or other is None else other, empty], state.line
    )
    zero = isinstance(beyond.expr, (Const, Index)) and _number(beyond) == 0
    part, rest = _part(state, pointer.shape, placed.rest) if zero else (pointer.shape, placed.rest)
    placed = replace(placed, shape=part)
    if part != pointer.shape:
        state.emit(Map(buffer, Const(empty, dtype), state.origin))
    inner = _start(buffer, tuple(part[number] for number in placed.order))
    move = Move(placed.region, inner, state.origin, inside=not masked)
    anywhere = any(state.ranges.of_data(start.names) for start in placed.start)  # where no mask holds
    guards = [c for c in placed.rest if anywhere and not any(axis_of(name) is not None for name in names(c))]
    guards = [c for c in guards if not any(True for _ in loads(c))]
    state.emit(If(conjunction(guards), (move,), (), state.origin) if guards else move)
    state.loaded[buffer] = frozenset({pointer.param})
    for number, first, end in placed.beyond:
        state.beyond.append((pointer.param, Beyond(buffer, placed.order.index(number), first, end)))
    if len(shape) == 1 and placed.order == (0,) and part == pointer.shape and dtype in ("int32", "int64"):
        conditions = (*placed.rest, *placed.edge)
        if not any(True for condition in conditions for _ in loads(condition)) and not beyond.shape:
            along = placed.axes.index(0)
            found = Places(pointer.param, placed.start, along, conditions, cast(beyond, dtype).expr, dtype)
            gathers.remember(state, buffer, found)
    tile = Load(buffer, tuple(axis(number) for number in placed.order), dtype)
    filled = ITEM_SIZE.get(dtype, 4) in FILLED  # a load of other types leaves what was there before (TL873)
    state.zeros[tile] = placed.edge if filled else ()
    value = Tile(pointer.shape, tile)
    for condition in rest if zero and filled else (*rest, *placed.edge):
        value = operation("select", [Tile(pointer.shape, condition), value, cast(beyond, dtype)], state.line)
    return truth_of_byte(value) if truth else value


def _integer(state: State, pointer: Pointer, placed: Placed) -> Sym:
    """A loaded integer, by the name that it gets."""
    name = state.fresh(state.hint)
    state.emit(Let(name, Load(pointer.param, placed.start, state.spec.tensors[pointer.param].held), state.origin))
    state.ranges.unknown.add(name)
    return var(name)


def _integer_where(state: State, pointer: Pointer, mask: Tile | None, other: object) -> Tile | None:
    """One integer under a mask: the first of the tensor is loaded where the mask does not hold, and is of no use."""
    dtype = state.spec.tensors[pointer.param].dtype
    units = {f"@{number}": 0 for number in range(len(pointer.shape))}
    holds = indicator(substituted(mask.expr, units)) if mask is not None else None
    single = all(extent.constant == 1 for extent in pointer.shape)
    if holds is None or not single or not isinstance(other, (int, type(None))):
        return None
    if pointer.param in state.spec.assumed and dtype == "float32" and other is not None:
        state.spec.tensors[pointer.param] = replace(state.spec.tensors[pointer.param], dtype="int32")
        raise Again
    if dtype not in ("int32", "int64"):
        return None
    state.in_rows = True  # a place that the mask lets through is one of the tensor
    try:
        offset = pointer.offset.substitute(units) * holds
        found = _integer(state, pointer, place(state, Pointer(pointer.param, offset, ()), None, reads=True))
    finally:
        state.in_rows = False
    empty = const(int(other or 0))
    return broadcast(Tile((), Index(empty + (found - empty) * holds)), pointer.shape)


def _gathered(
    state: State,
    node: object,
    pointer: Pointer,
    mask: Tile | None,
    other: object,
    into: str | None,
    below: Below | None = None,
) -> Tile:
    """The value of a load of rows at loaded places, or of rows that may lie below their tensor."""
    tensor = state.spec.tensors[pointer.param]
    if tensor.dtype == "bool" or into is not None:
        raise below or state.refuse("TL523", "a tensor of bool is read at loaded places")
    shape = tuple(pointer.shape[number] for number in gathers.order(state, pointer, below))
    buffer = state.target(node, "in", shape, tensor.held)

    def row(one: Pointer, under: Tile | None) -> Placed:
        return place(state, one, under, reads=True)

    found = gathers.load(state, pointer, mask, other, row, buffer, below)
    state.loaded[buffer] = frozenset({pointer.param})
    return found


def _start(buffer: str, shape: Shape) -> Region:
    """The first elements of a buffer along each axis."""
    return Region(buffer, tuple(const(0) for _ in shape), shape)


def _part(state: State, shape: Shape, conditions: tuple[Expr, ...]) -> tuple[Shape, tuple[Expr, ...]]:
    """The first elements of a tile along each axis that a mask lets through, as far as that never changes in a launch,
    and the conditions that say more."""
    part, rest = list(shape), []
    for condition in conditions:
        more, axes = positive(condition), [n for name in names(condition) if (n := axis_of(name)) is not None]
        count = more + axis(axes[0]) if more is not None and len(axes) == 1 else None
        if count is not None and part[axes[0]] == shape[axes[0]] and _is_part(state, count, shape[axes[0]]):
            part[axes[0]] = count
        elif count is None or part[axes[0]] != count:
            rest.append(condition)
    return tuple(part), tuple(rest)


def _is_part(state: State, count: Sym, extent: Sym) -> bool:
    """True if a tile has at least ``count`` elements; sizes are only compared if the spec says so, by the host."""
    if count.constant is not None and extent.constant is not None:
        return 0 < count.constant < extent.constant
    ranges, spec = state.ranges, state.spec
    moving = ranges.last.keys() | ranges.lets.keys() | ranges.unknown
    sizes = count.names | extent.names
    if not spec.parts or count == extent or sizes & moving or any(axis_of(name) is not None for name in sizes):
        return False
    if any(not 0 < one <= other for one, other in spec.relations(count, extent)):
        return False
    if not ranges.surely_natural(extent - count) or not ranges.surely_natural(count - 1):
        if not sizes <= spec.names:
            return False
        state.within[count, extent] = None
    return True


def _number(value: Tile) -> float | None:
    if isinstance(value.expr, Const):
        return value.expr.value
    return value.integer.constant if value.integer is not None else None


def store(
    state: State, pointer: Pointer | BlockPointer, value: Tile, mask: Tile | None, check: tuple[int, ...], atomic: bool
) -> None:
    """``tl.store`` and ``tl.atomic_add``."""
    pointer, mask = _plain(state, pointer, mask, check)
    pointer = unwrapped(state, pointer)
    scattered = gathers.by_rows(state, pointer) or (gathers.is_flat(state, pointer) and not atomic)
    placed = place(state, pointer, mask) if not scattered else None
    state.used.add(pointer.param)
    if value.dtype in ("float16", "bfloat16"):
        state.take_type(pointer.param, value.dtype)
    dtype = state.spec.tensors[pointer.param].held
    if state.spec.tensors[pointer.param].dtype == "bool":
        if value.dtype != "bool":
            raise state.refuse("TL530", f"a store of {value.dtype} to a tensor of bool")
        value = truth_as_byte(value)
    if placed is None:
        if atomic:
            raise state.refuse("TL523", "elements are added at loaded places")
        if any(n not in gathers.order(state, pointer) for n, e in enumerate(pointer.shape) if e.constant != 1):
            raise state.refuse("TL520", "several elements of the tile are stored to one address")
        value = cast(value, dtype) if not is_float(dtype) and value.dtype != "bool" else value
        source = _source(state, gathers.rows_first(state, pointer, value), dtype, _tile_of(pointer.param))
        gathers.store(state, pointer, mask, lambda one, under: place(state, one, under), source)
        return
    free = [
        number for number, extent in enumerate(pointer.shape) if number not in placed.order and extent.constant != 1
    ]
    if free:
        raise state.refuse("TL520", "several elements of the tile are stored to one address")
    part, scalar = _part(state, pointer.shape, placed.rest)
    by_place = [condition for condition in scalar if any(axis_of(name) is not None for name in names(condition))]
    masked = {number for condition in by_place for name in names(condition) if (number := axis_of(name)) is not None}
    if masked and not state.spec.parts:
        state.spec.parts = True
        raise Again
    by_data = all(state.ranges.of_data(names(condition)) for condition in by_place)
    if masked and (atomic or not by_data or masked != set(placed.order[:1])):
        raise state.refuse("TL522", "the store's mask does not end where the tensor ends")
    known = not any(name.startswith("$") for name in pointer.offset.names)  # where it lies
    view = state.spec.views.get(pointer.param, ()) if known else ()
    for number, start, extent in zip(placed.axes, placed.start, view, strict=False):
        cut = number is not None and part[number].constant is None and part[number] != pointer.shape[number]
        if cut and number is not None and not state.ranges.at_least_zero(extent - start - part[number]):
            raise state.refuse("TL522", "the store's mask may end behind the end of the tensor")
    if any(True for condition in scalar for _ in loads(condition)):
        raise state.refuse("TL522", "the store's mask depends on data")
    if len(value.shape) > len(pointer.shape):
        raise state.refuse("TL549", "a tile of more axes than its pointers")
    if not is_float(dtype) and value.dtype not in (dtype, "bool") and not isinstance(value.expr, (Const, Index)):
        value = cast(value, dtype)  # as an expression: it cuts off decimals and upper bits, a copy may round
    value = broadcast(value, pointer.shape)
    flat = Tile(
        tuple(pointer.shape[number] for number in placed.order),
        substituted(value.expr, _flat(placed.order, len(pointer.shape))),
    )
    source = _source(state, flat, dtype, _tile_of(pointer.param))
    if atomic and part != pointer.shape:
        raise state.refuse("TL522", "an atomic addition whose mask does not end where the tensor ends")
    placed = replace(placed, shape=part)
    whole = _start(source, tuple(part[number] for number in placed.order))
    stmt: Stmt = AtomicAdd(source, placed.region, state.origin) if atomic else Move(whole, placed.region, state.origin)
    row = var(state.fresh("row")) if masked else None
    if row is not None:
        one, other = _row(whole, 0, row), _row(placed.region, placed.axes.index(placed.order[0]), row)
        stmt = Move(one, other, state.origin)
        scalar = tuple(substituted(condition, {f"@{placed.order[0]}": row}) for condition in scalar)
    if scalar:
        stmt = If(conjunction(scalar), (stmt,), (), state.origin)
    if row is not None:
        stmt = For(str(row), part[placed.order[0]], (stmt,), 0, state.origin)
    state.emit(stmt)


def _row(region: Region, place: int, row: Sym) -> Region:
    """One row of a region along an axis."""
    start, extent = list(region.start), list(region.extent)
    start[place], extent[place] = start[place] + row, None
    return Region(region.buffer, tuple(start), tuple(extent))


def _flat(order: tuple[int, ...], rank: int) -> dict[str, Sym | int]:
    """Tile axes by their place in memory; those of one element are at 0."""
    found: dict[str, Sym | int] = {f"@{number}": 0 for number in range(rank)}
    return found | {f"@{number}": axis(place) for place, number in enumerate(order)}


def _tile_of(param: str) -> str:
    """What is stored has the name of its tensor: ``y_tile`` for ``y_ptr``."""
    return f"{re.sub(r'_?ptrs?$', '', param.lower()) or param}_tile"


def _source(state: State, value: Tile, dtype: str, hint: str) -> str:
    """A buffer that holds the tile as it lies in memory."""
    expr = value.expr
    straight = tuple(axis(number) for number in range(len(value.shape)))
    if isinstance(expr, Load) and expr.index == straight:
        buffer = state.buffers.get(expr.buffer)
        if buffer is not None and buffer.shape == value.shape:
            return expr.buffer
    computed = value.dtype if not isinstance(expr, (Const, Index)) else dtype
    name = state.allocate(hint, value.shape, computed)
    state.write(name, cast(value, computed), tuple(range(len(value.shape))))
    return name


def _plain(
    state: State, pointer: Pointer | BlockPointer, mask: Tile | None, check: tuple[int, ...]
) -> tuple[Pointer, Tile | None]:
    if isinstance(pointer, Pointer):
        if mask is not None:
            mask = broadcast(mask, pointer.shape) if len(mask.shape) <= len(pointer.shape) else mask
            if len(mask.shape) > len(pointer.shape):
                raise state.refuse("TL549", "a mask of more axes than its pointers")
        return pointer, mask
    offset = pointer.base.offset
    whole: Tile | None = None
    for number, (start, stride, size) in enumerate(zip(pointer.offsets, pointer.strides, pointer.shape, strict=True)):
        offset = offset + (start + axis(number)) * stride
        element = Tile(pointer.block, Index(start + axis(number)))
        bounds = [("lt", size)] if number in check or pointer.described else []
        if pointer.described and not state.ranges.at_least_zero(start):
            bounds.append(("ge", const(0)))
        for op, bound in bounds:
            inside = operation(op, [element, Tile((), Index(bound))], state.line)
            whole = inside if whole is None else operation("and", [whole, inside], state.line)
    return Pointer(pointer.base.param, offset, pointer.block), whole
