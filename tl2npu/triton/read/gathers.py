"""Rows at loaded places: ``K + at[:, None] * stride + d[None, :]``, where ``at`` is a tile of integers that was loaded.

Such a tile is read and written row by row, each at a place that is loaded again as one integer. So are tiles with
steps that no shape of their tensor has: each row is where it lies in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tl2npu.kernel.symbolic import Atom, Div, Mod, Opaque, Sym, const, opaque, var
from tl2npu.tile.expr import Call, Const, Expr, Index, Load, axis, axis_of, loads, rebuilt, substituted
from tl2npu.tile.ir import For, If, Let, Map, Move, Region, Stmt, statements
from tl2npu.tile.unstored import Beyond
from tl2npu.triton.read import choices
from tl2npu.triton.read.asked import equate
from tl2npu.triton.read.build import broadcast, cast, operation
from tl2npu.triton.read.masks import conjunction, conjuncts, positive
from tl2npu.triton.read.ranges import smallest
from tl2npu.triton.read.spec import Again
from tl2npu.triton.read.state import Places, State
from tl2npu.triton.read.values import Pointer, Shape, Tile
from tl2npu.triton.read.views import Placed, names
from tl2npu.triton.refused import Below

ELEMENT = "element"
"""An element of a tile of places: the tile's name, and the place along its axis."""

Place = Callable[[Pointer, Tile | None], Placed]


def place_of(state: State, tile: Tile) -> Sym | None:
    """The integers of a tile, some of which are loaded, as one integer of the element's place; None for others."""

    def element(load: Load) -> Sym | None:
        if load.buffer in state.places and len(load.index) == 1:
            return opaque(ELEMENT, var(load.buffer), load.index[0])
        return None

    return choices.integer(_loaded(state, state.resolved(tile.expr)), element)


def _loaded(state: State, expr: Expr) -> Expr:
    """With loaded places alone for ``select(mask, places, other)``: they have that mask and what they are elsewhere."""
    if not isinstance(expr, Call):
        return expr
    expr = replace(expr, args=tuple(_loaded(state, arg) for arg in expr.args))
    if expr.op != "select":
        return expr
    test, one, other = expr.args
    if not isinstance(one, Load) or one.buffer not in state.places:
        return expr
    found = state.places[one.buffer]
    masks = [substituted(condition, {"@0": one.index[0]}) for condition in found.conditions]
    return one if test in masks and other == found.other else expr


def remember(state: State, buffer: str, found: Places) -> None:
    """A vector of integers was loaded."""
    name = f"?{len(state.places)}"
    state.places[name] = found
    state.indices[buffer] = Load(name, (axis(0),), "int32")


def atoms(pointer: Pointer) -> list[Opaque]:
    """The elements of tiles of places in an address."""
    found = (atom for atom in pointer.offset.atoms() if isinstance(atom, Opaque) and atom.head == ELEMENT)
    return list(dict.fromkeys(found))


def by_rows(state: State, pointer: Pointer) -> bool:
    """True for a tile that is read or written row by row: its places are loaded, or steps of no shape of the tensor."""
    return bool(atoms(pointer)) or (pointer.param in state.spec.flat and bool(axes(state, pointer)[0]))


def is_flat(state: State, pointer: Pointer) -> bool:
    """True for more than one element of a tensor that is taken as it lies in memory."""
    return pointer.param in state.spec.flat and any(extent.constant != 1 for extent in pointer.shape)


def axes(state: State, pointer: Pointer, below: Below | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of a tile along which its rows are, and those in a row, in the order of memory.

    Rows are along the axis of loaded places, or of rows that may lie below. Raises ``Refused``.
    """
    found = {axis_of(name) for atom in atoms(pointer) for name in atom.args[1].names}
    found |= {below.number} if below is not None else set()
    several = [n for n, extent in enumerate(pointer.shape) if extent.constant != 1]
    if pointer.param in state.spec.flat:
        used = [n for n in several if f"@{n}" in pointer.offset.names]
        inner = [n for n in used if n not in found and _is_consecutive(pointer.offset, n)][-1:]
        if not inner and len(used) > 1:
            for n in reversed(used):
                step = pointer.offset.substitute({f"@{n}": axis(n) + 1}) - pointer.offset
                if step.atom is not None and equate(state, step, const(1)):
                    raise Again
            raise state.refuse("TL520", f"no elements of a tile lie side by side in `{pointer.param}`")
        return tuple(n for n in used if n not in inner), tuple(inner)
    [number] = found if len(found) == 1 else [None]
    if number is None or len(pointer.shape) > 2:
        raise state.refuse("TL523", "each element is at an address that is loaded")
    return (number,), tuple(n for n in range(len(pointer.shape)) if n != number)


def _is_consecutive(offset: Sym, number: int) -> bool:
    return offset.substitute({f"@{number}": axis(number) + 1}) - offset == const(1)


@dataclass
class _Rows:
    """A tile that is read or written row by row along ``axes``; ``at``: which row, along each of them."""

    state: State
    pointer: Pointer
    mask: Tile | None
    axes: tuple[int, ...]
    at: tuple[Sym, ...]
    below: Below | None = None
    named: list[Stmt] = field(default_factory=list)

    def loop(self, body: Callable[[Placed], Sequence[Stmt]], place: Place) -> tuple[list[Stmt], Placed, list[Expr]]:
        """The loop over the rows, where one of them lies, and the conditions on elements of a row."""
        state, names_of_rows = self.state, [str(row) for row in self.at]
        rows = list(zip(self.axes, self.at, strict=True))
        state.ranges.last.update({str(row): self.pointer.shape[number] - 1 for number, row in rows})
        with state.body():
            pointer, mask, known = self.at_row()
            conditions = list(conjuncts(mask.expr)) if mask is not None else []
            by_row = [c for c in conditions if not any(axis_of(name) is not None for name in names(c))]
            by_element = [c for c in conditions if c not in by_row]
            state.in_rows = bool(self.axes) and pointer.param in state.spec.flat
            try:
                placed = place(pointer, Tile(pointer.shape, conjunction(by_element)) if by_element else None)
            finally:
                state.in_rows = False
            if placed.order != axes(state, self.pointer, self.below)[1]:
                raise state.refuse("TL523", "elements of a row at a loaded place are not consecutive")
            rest = [*placed.rest, *placed.edge]
            by_place = known.keys() & {name for c in rest for name in names(c)}
            if by_place or any(True for c in conditions for _ in loads(c)):
                raise state.refuse("TL523", "a mask depends on loaded places and on the element")
            if len(placed.start) == 1 and len(placed.start[0].terms) > 3:
                name = state.fresh("start")
                self.named.append(Let(name, Index(placed.start[0]), state.origin))
                placed = replace(placed, start=(var(name),))
            done = self.first(known, by_row, [*self.named, *body(placed)])
        for name in names_of_rows:
            del state.ranges.last[name]
        for number, row in reversed(rows):
            done = [For(str(row), self.pointer.shape[number], tuple(done), 0, state.origin)]
        back = {str(row): axis(number) for number, row in rows}
        return done, placed, [substituted(condition, back) for condition in rest]

    def at_row(self) -> tuple[Pointer, Tile | None, dict[str, Places]]:
        """The pointer and the mask at one row, whose places have names from here on."""
        state, known = self.state, dict[str, Places]()
        here = {f"@{number}": row for number, row in zip(self.axes, self.at, strict=True)}
        named: dict[Atom, Sym] = {}
        by_tile: dict[str, Sym] = {}
        for atom in atoms(self.pointer):
            tile = str(atom.args[0])
            if tile in by_tile:
                raise state.refuse("TL523", "an address has several elements of one tile of places")
            name = state.fresh("at")
            known[name] = state.places[tile]
            named[atom] = by_tile[tile] = var(name)
            state.ranges.unknown.add(name)
        if self.below is not None:  # a name for the index: nothing need be known of it, as the mask is
            name, number = state.fresh("at"), self.below.number
            first = self.below.index.substitute({f"@{number}": 0})
            self.named = [Let(name, Index(first + here[f"@{number}"]), state.origin)]
            state.ranges.unknown.add(name)
            offset = self.pointer.offset.substitute({**here, f"@{number}": var(name) - first})
        else:
            offset = _replaced(self.pointer.offset, named).substitute(here)

        def part(item: Expr) -> Expr | None:
            return Index(by_tile[item.buffer]) if isinstance(item, Load) and item.buffer in by_tile else None

        mask = self.mask
        if mask is not None:
            expr = substituted(rebuilt(state.resolved(mask.expr), part), here)
            mask = Tile(self._one_row(mask.shape), expr)
        return Pointer(self.pointer.param, offset, self._one_row(self.pointer.shape)), mask, known

    def _one_row(self, shape: Shape) -> Shape:
        return tuple(const(1) if n in self.axes else extent for n, extent in enumerate(shape))

    def first(self, known: dict[str, Places], by_row: Sequence[Expr], inner: list[Stmt]) -> list[Stmt]:
        """What is done for a row behind the loads of its places: under their masks, and with what masks give else."""
        origin, row = self.state.origin, self.at[0] if self.at else const(0)
        here = {"@0": row}
        masks = {c: None for found in known.values() for c in (substituted(c, here) for c in found.conditions)}
        implied = set(masks) <= set(by_row)  # a row whose place is not loaded is left out
        if left := [c for c in by_row if c not in masks]:
            inner = [If(conjunction(left), tuple(inner), (), origin)]
        if masks and not implied and len(known) > 1:
            raise self.state.refuse("TL523", "several loaded places under masks of their own")
        made, fallback = inner, inner
        for name, found in reversed(known.items()):
            start = tuple(s + row if n == found.axis else s for n, s in enumerate(found.start))
            made = [Let(name, Load(found.param, start, found.dtype), origin), *made]
            fallback = [Let(name, found.other, origin), *fallback]
            self.state.gathered.add(found.param)
        if masks:
            made = [If(conjunction(list(masks)), tuple(made), () if implied else tuple(fallback), origin)]
        return made


def _replaced(value: Sym, named: dict[Atom, Sym]) -> Sym:
    """With names for elements, wherever they stand."""

    def new(atom: Atom) -> Sym:
        if atom in named:
            return named[atom]
        match atom:
            case Div():
                return _replaced(atom.num, named) // _replaced(atom.den, named)
            case Mod():
                return _replaced(atom.num, named) % _replaced(atom.den, named)
            case Opaque() if atom.args:
                return opaque(atom.head, *(_replaced(arg, named) for arg in atom.args))
        return Sym.of({(atom,): 1})

    total = const(0)
    for mono, coef in value.terms:
        term = const(coef)
        for atom in mono:
            term = term * new(atom)
        total = total + term
    return total


def load(
    state: State,
    pointer: Pointer,
    mask: Tile | None,
    other: object,
    place: Place,
    buffer: str,
    below: Below | None = None,
) -> Tile:
    """The value of a load of rows; ``buffer``: the tile that they go to, rows first."""
    dtype, rows = state.spec.tensors[pointer.param].held, _of(state, pointer, mask, below)
    beyond = cast(operation("add", [0 if other is None else other, 0], state.line), dtype)
    loop, placed, rest = rows.loop(
        lambda placed: [Move(placed.region, _row(state, buffer, rows, placed), state.origin)], place
    )
    if any(isinstance(stmt, If) for stmt in statements(tuple(loop))):
        state.emit(Map(buffer, beyond.expr, state.origin))
    for stmt in loop:
        state.emit(stmt)
    places = order(state, pointer, below)
    state.beyond += [(pointer.param, Beyond(buffer, places.index(n), first, end)) for n, first, end in placed.beyond]
    value = Tile(pointer.shape, Load(buffer, tuple(map(axis, places)), dtype))
    zero = isinstance(beyond.expr, Const) and beyond.expr.value == 0
    for condition in rest if not zero else [c for c in rest if c not in placed.edge]:
        value = operation("select", [Tile(pointer.shape, condition), value, beyond], state.line)
    return value


def store(state: State, pointer: Pointer, mask: Tile | None, place: Place, source: str) -> None:
    """A store of rows, which ``source`` holds."""
    rows = _of(state, pointer, mask)

    def stored(placed: Placed) -> list[Stmt]:
        placed, some = _as_far(state, placed)
        move = Move(_row(state, source, rows, placed), placed.region, state.origin)
        return [If(conjunction(some), (move,), (), state.origin)] if some else [move]

    for stmt in rows.loop(stored, place)[0]:
        state.emit(stmt)


def _as_far(state: State, placed: Placed) -> tuple[Placed, list[Expr]]:
    """A row as far as masks let elements through, and the conditions that these are any. Raises ``Refused``."""
    shape, some = list(placed.shape), list[Expr]()
    for condition in placed.rest:
        more, numbers = positive(condition), [n for name in names(condition) if (n := axis_of(name)) is not None]
        count = more + axis(numbers[0]) if more is not None and len(numbers) == 1 else None
        if count is None or any(axis_of(name) is not None for name in count.names):
            raise state.refuse("TL522", "the store's mask does not end where the tensor ends")
        shape[numbers[0]] = smallest(shape[numbers[0]], count)
        if not state.ranges.at_least_zero(count - 1):
            some.append(Call("lt", (Index(const(0)), Index(count)), "bool"))
    return replace(placed, shape=tuple(shape)), some


def _of(state: State, pointer: Pointer, mask: Tile | None, below: Below | None = None) -> _Rows:
    outer = axes(state, pointer, below)[0]
    return _Rows(state, pointer, mask, outer, tuple(var(state.fresh("row")) for _ in outer), below)


def order(state: State, pointer: Pointer, below: Below | None = None) -> tuple[int, ...]:
    """The axes of a tile as its rows are stored."""
    outer, inner = axes(state, pointer, below)
    return (*outer, *inner)


def _row(state: State, buffer: str, rows: _Rows, placed: Placed) -> Region:
    inner = tuple(placed.shape[n] for n in axes(state, rows.pointer, rows.below)[1])
    return Region(buffer, (*rows.at, *(const(0) for _ in inner)), (*(None for _ in rows.at), *inner))


def rows_first(state: State, pointer: Pointer, value: Tile) -> Tile:
    """A tile with the axes of its rows first, as they are stored."""
    turned: dict[str, Sym | int] = {f"@{n}": 0 for n in range(len(pointer.shape))}
    turned |= {f"@{n}": axis(at) for at, n in enumerate(order(state, pointer))}
    shape = tuple(pointer.shape[n] for n in order(state, pointer))
    return Tile(shape, substituted(broadcast(value, pointer.shape).expr, turned))
