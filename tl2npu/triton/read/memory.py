"""Loads and stores: pointers and masks as regions of row-major tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tl2npu.kernel.symbolic import Mod, Sym, const, var
from tl2npu.tile.expr import Call, Const, Expr, Index, Load, axis, axis_of, integers, loads, substituted
from tl2npu.tile.ir import AtomicAdd, If, Let, Move, Region, Stmt
from tl2npu.triton.read.addresses import axis_step, collapses, guesses, split
from tl2npu.triton.read.build import broadcast, cast, operation
from tl2npu.triton.read.masks import conjuncts, positive
from tl2npu.triton.read.spec import Again, Tensor
from tl2npu.triton.read.state import State
from tl2npu.triton.read.values import BlockPointer, Pointer, Shape, Tile
from tl2npu.triton.refused import Refused


@dataclass(frozen=True)
class Placed:
    """Where a pointer tile lies: ``start`` and the tile's axis, if any, along each axis of the tensor.

    ``edge``: conditions of the mask that say no more than that the element lies inside of the tensor; ``rest``: others.
    """

    param: str
    start: tuple[Sym, ...]
    axes: tuple[int | None, ...]
    shape: Shape
    edge: tuple[Expr, ...]
    rest: tuple[Expr, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of the pointer tile in the order in which they lie in memory."""
        return tuple(number for number in self.axes if number is not None)

    @property
    def region(self) -> Region:
        """The part of the tensor."""
        extents = tuple(self.shape[number] if number is not None else None for number in self.axes)
        return Region(self.param, self.start, extents)


def load(
    state: State,
    node: object,
    pointer: Pointer | BlockPointer,
    mask: Tile | None,
    other: object,
    check: tuple[int, ...],
) -> Tile:
    """The value of ``tl.load``."""
    pointer, mask = _plain(state, pointer, mask, check)
    placed = _place(state, pointer, mask)
    dtype = state.spec.tensors[pointer.param].dtype
    state.used.add(pointer.param)
    if not placed.order and not dtype.startswith(("float", "bfloat")):
        if placed.rest:
            raise state.refuse("TL522", "a masked load of a single integer")
        name = state.fresh(state.hint)
        state.emit(Let(name, Load(pointer.param, placed.start, dtype), state.origin))
        state.ranges.unknown.add(name)
        return broadcast(Tile((), Index(var(name))), pointer.shape)
    shape = tuple(pointer.shape[number] for number in placed.order)
    buffer = state.target(node, "in", shape, dtype)
    whole = Region(buffer, tuple(const(0) for _ in shape), shape)
    state.emit(Move(placed.region, whole, state.origin))
    value = Tile(pointer.shape, Load(buffer, tuple(axis(number) for number in placed.order), dtype))
    fill = other if other is not None else 0
    beyond = operation("add", [fill, 0.0 if dtype.startswith(("float", "bfloat")) else 0], state.line)
    zero = isinstance(beyond.expr, (Const, Index)) and _number(beyond) == 0
    conditions = placed.rest if zero else (*placed.rest, *placed.edge)
    for condition in conditions:
        value = operation("select", [Tile(pointer.shape, condition), value, cast(beyond, dtype)], state.line)
    return value


def _number(value: Tile) -> float | None:
    if isinstance(value.expr, Const):
        return value.expr.value
    return value.integer.constant if value.integer is not None else None


def store(
    state: State, pointer: Pointer | BlockPointer, value: Tile, mask: Tile | None, check: tuple[int, ...], atomic: bool
) -> None:
    """``tl.store`` and ``tl.atomic_add``."""
    pointer, mask = _plain(state, pointer, mask, check)
    placed = _place(state, pointer, mask)
    state.used.add(pointer.param)
    dtype = state.spec.tensors[pointer.param].dtype
    free = [
        number for number, extent in enumerate(pointer.shape) if number not in placed.order and extent.constant != 1
    ]
    if free:
        raise state.refuse("TL520", "several elements of the tile are stored to one address")
    if any(axis_of(name) is not None for condition in placed.rest for name in _names(condition)):
        raise state.refuse("TL522", "the store's mask does not end where the tensor ends")
    if any(True for condition in placed.rest for _ in loads(condition)):
        raise state.refuse("TL522", "the store's mask depends on data")
    if len(value.shape) > len(pointer.shape):
        raise state.refuse("TL549", "a tile of more axes than its pointers")
    value = broadcast(value, pointer.shape)
    flat = Tile(
        tuple(pointer.shape[number] for number in placed.order),
        substituted(value.expr, _flat(placed.order, len(pointer.shape))),
    )
    source = _source(state, flat, dtype, "values")
    whole = Region(source, tuple(const(0) for _ in flat.shape), flat.shape)
    stmt: Stmt = AtomicAdd(source, placed.region, state.origin) if atomic else Move(whole, placed.region, state.origin)
    if placed.rest:
        condition = placed.rest[0]
        for more in placed.rest[1:]:
            condition = Call("and", (condition, more), "bool")
        stmt = If(condition, (stmt,), (), state.origin)
    state.emit(stmt)


def _names(expr: Expr) -> frozenset[str]:
    return frozenset().union(*(value.names for value in integers(expr)))


def _flat(order: tuple[int, ...], rank: int) -> dict[str, Sym | int]:
    """Tile axes by their place in memory; those of one element are at 0."""
    found: dict[str, Sym | int] = {f"@{number}": 0 for number in range(rank)}
    return found | {f"@{number}": axis(place) for place, number in enumerate(order)}


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
        if number in check:
            inside = operation(
                "lt",
                [Tile(pointer.block, Index(start + axis(number))), Tile((), Index(size))],
                state.line,
            )
            whole = inside if whole is None else operation("and", [whole, inside], state.line)
    return Pointer(pointer.base.param, offset, pointer.block), whole


def _place(state: State, pointer: Pointer, mask: Tile | None) -> Placed:
    tensor = state.spec.tensors[pointer.param]
    if any(name.startswith("$") for name in pointer.offset.names):  # how far it moves is not known yet
        axes = tuple(number for number, extent in enumerate(pointer.shape) if extent.constant != 1)
        return Placed(pointer.param, tuple(const(0) for _ in axes), axes, pointer.shape, (), ())
    units = {f"@{number}": 0 for number, extent in enumerate(pointer.shape) if extent.constant == 1}
    offset = pointer.offset.substitute(units)
    conditions = [substituted(part, units) for part in conjuncts(mask.expr)] if mask is not None else []
    if any(isinstance(part, Const) and not part.value for part in conditions):
        raise state.refuse("TL522", "the mask is never true")
    if tensor.shape is None:
        state.spec.tensors[pointer.param] = Tensor(_guess(state, pointer, offset, conditions), tensor.dtype)
        raise Again
    with_axes = {f"@{number}": extent - 1 for number, extent in enumerate(pointer.shape)}
    state.ranges.last.update(with_axes)
    try:
        offset = _unwrapped(state, pointer, offset)
        return _view(state, replace(pointer, offset=offset), tensor.shape, conditions)
    finally:
        for name in with_axes:
            del state.ranges.last[name]


def _unwrapped(state: State, pointer: Pointer, offset: Sym) -> Sym:
    """``(start + arange) % M`` as ``start + arange`` where the host checks that blocks divide ``M``."""
    for atom in offset.atoms():
        if not isinstance(atom, Mod) or all(axis_of(name) is None for name in atom.names):
            continue
        if not state.ranges.less(atom.num, atom.den):
            sizes = [extent for number, extent in enumerate(pointer.shape) if f"@{number}" in atom.num.names]
            state.ranges.divides.add((atom.den, sizes[0]))
            fits = state.ranges.less(atom.num, atom.den)
            state.ranges.divides.discard((atom.den, sizes[0]))
            if not fits:
                raise state.refuse("TL520", f"the index `{_shown(atom.num)}` wraps around at {_shown(atom.den)}")
            state.spec.divides.append((atom.den, sizes[0]))
            raise Again
        mark = "~wrapped"
        replaced = _replaced(offset, atom, var(mark))
        return _unwrapped(state, pointer, replaced.substitute({mark: atom.num}))
    return offset


def _replaced(value: Sym, old: Mod, new: Sym) -> Sym:
    total = const(0)
    for mono, coef in value.terms:
        rest = Sym.of({tuple(atom for atom in mono if atom != old): coef})
        total = total + (rest * new if old in mono else Sym.of({mono: coef}))
    return total


def _view(state: State, pointer: Pointer, shape: Shape, conditions: list[Expr]) -> Placed:
    spec = state.spec
    chosen = spec.views.get(pointer.param)
    first: Refused | None = None
    for may_ask, whole in ((False, True), (False, False), (True, False)):
        if not whole and chosen is None and not may_ask:
            _Fit(state, pointer, shape, conditions, True).ask_strides()
        for view in collapses(shape):
            if (pointer.param, view) in spec.failed:
                continue
            if chosen is not None and view != chosen:
                continue
            try:
                placed = _Fit(state, pointer, view, conditions, may_ask).placed()
            except Refused as refused:
                first = first or refused
                continue
            if whole and any(axis_of(name) is not None for c in placed.rest for name in _names(c)):
                continue
            spec.views[pointer.param] = view
            return placed
    if chosen is not None:
        spec.failed.add((pointer.param, chosen))
        del spec.views[pointer.param]
        if any((pointer.param, view) not in spec.failed for view in collapses(shape)):
            raise Again
    raise first or state.refuse("TL521", f"the accesses to `{pointer.param}` fit no common shape")


def _guess(state: State, pointer: Pointer, offset: Sym, conditions: list[Expr]) -> Shape:
    """What an unknown tensor must look like for this access."""
    ranges = state.ranges
    moving = ranges.last.keys() | ranges.lets.keys() | ranges.unknown
    shapes = list(guesses(offset, frozenset(ranges.last)))
    bounds = [more for condition in conditions if (more := positive(condition)) is not None]
    last = {f"@{number}": extent - 1 for number, extent in enumerate(pointer.shape)}
    ranges.last.update(last)
    try:
        for shape in shapes:
            index = split(offset, shape)
            for more in bounds:
                extent = more + index[0]
                if _fixed(extent) and not extent.names & moving and _inner(state, index, shape, bounds):
                    return (extent, *shape[1:])
        for shape in reversed(shapes):
            index = split(offset, shape)
            extent = next(iter(ranges.bounds(index[0]))) + 1
            if _fixed(extent) and not extent.names & moving and _inner(state, index, shape, bounds):
                return (extent, *shape[1:])
    finally:
        for name in last:
            del ranges.last[name]
    raise state.refuse("TL521", f"the shape of `{pointer.param}` is not known to the host code")


def _inner(state: State, index: tuple[Sym, ...], shape: Shape, bounds: list[Sym]) -> bool:
    """True if every axis but the first is bounded, by a mask or by what is known."""
    return all(
        state.ranges.less(part, extent) or any(_fixed(more + part) for more in bounds)
        for part, extent in zip(index[1:], shape[1:], strict=True)
    )


@dataclass
class _Fit:
    """One access against one view of its tensor."""

    state: State
    pointer: Pointer
    view: Shape
    conditions: list[Expr]
    may_ask: bool

    def placed(self) -> Placed:
        index = split(self.pointer.offset, self.view)
        starts, axes, edge = [], [], []
        for place, (part, extent) in enumerate(zip(index, self.view, strict=True)):
            found = axis_step(part)
            if found is None or found[2].constant not in (0, 1):
                self.ask_strides()
            if found is None or (found[1] in axes and found[1] is not None):
                raise self.state.refuse(
                    "TL520", f"the address in `{self.pointer.param}` is not affine: `{_shown(part)}`"
                )
            start, number, step = found
            if number is not None and step.constant != 1:
                self.pin(step)
                raise self.state.refuse("TL520", f"`{self.pointer.param}` is read or written with a step of {step}")
            covered = self.inside(place, part, extent, number)
            edge += covered
            starts.append(start)
            axes.append(number)
        rest = tuple(c for c in self.conditions if c not in edge and not self.always(c))
        return Placed(self.pointer.param, tuple(starts), tuple(axes), self.pointer.shape, tuple(edge), rest)

    def pin(self, step: Sym) -> None:
        """A step that the launch passes as a number is read as that number."""
        spec = self.state.spec
        found = {name for name in step.names if name in spec.numbers and name not in spec.pinned}
        if found and self.may_ask:
            spec.pinned |= found
            raise Again

    def ask_strides(self) -> None:
        """Where the kernel steps by a size that is not the tensor's own, have the host check that they are equal."""
        if not self.may_ask or len(self.view) < 2:
            return
        offset = self.pointer.offset
        for name in (*(f"@{number}" for number in range(len(self.pointer.shape))), *self.state.blocks):
            step = offset.substitute({name: 1}) - offset.substitute({name: 0})
            if step.atom is None or step == self.view[-1] or (axis_of(name) is None and step in self.pointer.shape):
                continue
            if _equate(self.state, step, self.view[-1]):
                raise Again

    def ask_likeness(self) -> None:
        """Where every call passes this tensor in the shape of another one, have the host check that it is."""
        spec, param = self.state.spec, self.pointer.param
        shape = spec.tensors[param].shape or ()
        for name, other in spec.tensors.items():
            if name == param or other.shape is None or len(other.shape) != len(shape):
                continue
            pairs = [(one, two) for one, two in zip(shape, other.shape, strict=True) if one != two]
            like = all((shown := list(spec.relations(*pair))) and all(a == b for a, b in shown) for pair in pairs)
            if like and any(_equate(self.state, *pair) for pair in pairs):
                raise Again

    def always(self, condition: Expr) -> bool:
        value = positive(condition)
        return value is not None and self.state.ranges.at_least_zero(value - 1)

    def inside(self, place: int, index: Sym, extent: Sym, number: int | None) -> list[Expr]:
        """The conditions by which the index stays below the extent; refuses where it may leave the axis."""
        ranges, param = self.state.ranges, self.pointer.param
        if not (index.names & ranges.unknown) and not ranges.at_least_zero(index):
            raise self.state.refuse("TL521", f"the index `{_shown(index)}` of `{param}` may be negative")
        exact = [c for c in self.conditions if positive(c) == extent - index]
        if exact:
            return exact
        if ranges.less(index, extent):
            return []
        if self.may_ask:
            self.ask(index, extent, number)
        bounds = [c for c in self.conditions if (more := positive(c)) is not None and _fixed(more + index)]
        if place == 0 and (self.may_ask or not bounds):
            return []  # what lies behind the end of a tensor is nobody's
        if bounds:
            more = positive(bounds[0])
            assert more is not None
            raise self.state.refuse(
                "TL522",
                f"the mask of `{param}` ends at {_shown(more + index)}, but the axis has {_shown(extent)} elements",
            )
        raise self.state.refuse(
            "TL521", f"the index `{_shown(index)}` may leave an axis of `{param}` of {_shown(extent)}"
        )

    def ask(self, index: Sym, extent: Sym, number: int | None) -> None:
        """Have the host check what is missing, and read again."""
        spec = self.state.spec
        for condition in self.conditions:
            more = positive(condition)
            if more is not None and _fixed(bound := more + index) and _equate(self.state, bound, extent):
                raise Again
        self.ask_likeness()
        if number is None:
            return
        size = self.pointer.shape[number]
        start = index.substitute({f"@{number}": 0})
        if start.is_zero and _equate(self.state, size, extent):
            raise Again
        if (extent, size) not in self.state.ranges.divides and extent.names <= spec.names | spec.values.keys():
            self.state.ranges.divides.add((extent, size))
            fits = self.state.ranges.less(index, extent)
            self.state.ranges.divides.discard((extent, size))
            if fits:
                spec.divides.append((extent, size))
                raise Again


def _equate(state: State, one: Sym, other: Sym) -> bool:
    """Note that two sizes must be equal, which the host will check; False if no name is one, or a call shows others."""
    for left, right in ((other, one), (one, other)):
        name = str(left) if left.atom is not None else ""
        fits = name in state.spec.names and name not in right.names and right.names <= state.spec.names
        if fits and all(a == b for a, b in state.spec.relations(left, right)):
            state.spec.equal.append((left, right))
            state.spec.known[name] = right
            return True
    return False


def _fixed(value: Sym) -> bool:
    return not any(axis_of(name) is not None for name in value.names)


def _shown(value: Sym) -> str:
    text = str(value)
    for number, name in enumerate("ij"):
        text = text.replace(f"@{number}", name)
    return text
