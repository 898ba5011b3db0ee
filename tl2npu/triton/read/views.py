"""Which element of a row-major view of its tensor each address is, and what the host must check for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tl2npu.kernel.symbolic import Atom, Mod, Opaque, Sym, const, product, var
from tl2npu.tile.expr import Const, Expr, axis_of, integers, substituted, with_integers
from tl2npu.tile.ir import Region
from tl2npu.triton.read.addresses import along, axis_step, collapses, guesses, shown, split, step_of
from tl2npu.triton.read.asked import ask_divides, equate
from tl2npu.triton.read.masks import conjuncts, positive, separated
from tl2npu.triton.read.ranges import WITHIN
from tl2npu.triton.read.spec import Again, Tensor
from tl2npu.triton.read.state import State
from tl2npu.triton.read.values import Pointer, Shape, Tile
from tl2npu.triton.refused import Below, Refused


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
    beyond: tuple[tuple[int, Sym, Sym], ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of the pointer tile in the order in which they lie in memory."""
        return tuple(number for number in self.axes if number is not None)

    @property
    def region(self) -> Region:
        """The part of the tensor."""
        extents = tuple(self.shape[number] if number is not None else None for number in self.axes)
        return Region(self.param, self.start, extents)


def place(state: State, pointer: Pointer, mask: Tile | None, reads: bool = False) -> Placed:
    """Where the elements lie in the view of their tensor that all accesses of the kernel fit. Raises ``Refused``.

    ``reads``: elements may lie elsewhere that turn out to be of no use.
    """
    tensor = state.spec.tensors[pointer.param]
    if any(name.startswith("$") for name in pointer.offset.names):  # how far it moves is not known yet
        axes = tuple(number for number, extent in enumerate(pointer.shape) if extent.constant != 1)
        return Placed(pointer.param, tuple(const(0) for _ in axes), axes, pointer.shape, (), ())
    units = {f"@{number}": 0 for number, extent in enumerate(pointer.shape) if extent.constant == 1}
    offset = _summed(state, pointer.offset.substitute(units))
    whole = conjuncts(mask.expr) if mask is not None else []
    parts = [part for condition in whole for part in separated(condition, state.ranges.lets)]
    conditions = [with_integers(substituted(part, units), lambda value: _summed(state, value)) for part in parts]
    if any(isinstance(part, Const) and not part.value for part in conditions):
        raise state.refuse("TL522", "the mask is never true")
    with_axes = {f"@{number}": extent - 1 for number, extent in enumerate(pointer.shape)}
    state.ranges.last.update(with_axes)
    try:
        reads = reads and pointer.param not in state.spec.strict
        beyond: list[tuple[int, Sym, Sym]] = []
        pointer = replace(pointer, offset=_unwrapped(state, pointer, offset, beyond if reads else None))
        if tensor.shape is None:
            shape = _stepped_through(state, pointer, conditions) or _guess(state, pointer, conditions)
            state.spec.tensors[pointer.param] = tensor = Tensor(shape, tensor.dtype)
            state.ranges.sure |= state.spec.sizes()
            state.spec.stale = True
        assert tensor.shape is not None
        placed = _view(state, pointer, tensor.shape, conditions, reads)
        return replace(placed, beyond=(*placed.beyond, *beyond))
    finally:
        for name in with_axes:
            del state.ranges.last[name]


def _summed(state: State, offset: Sym) -> Sym:
    """With sums and products in the place of the names that they have, so that each term finds its axis."""
    sums = {name: value for name, value in state.ranges.lets.items() if value.atom is None}
    while not offset.names.isdisjoint(sums):
        offset = offset.substitute(sums)
    return offset


def _unwrapped(state: State, pointer: Pointer, offset: Sym, beyond: list[tuple[int, Sym, Sym]] | None) -> Sym:
    """``(start + arange) % M`` as ``start + arange`` where what wraps around is of no use, or never happens.

    Notes in ``beyond`` what must be of no use; without it the host checks that blocks divide ``M``.
    """
    for atom in offset.atoms():
        bounded = isinstance(atom, Mod) or (isinstance(atom, Opaque) and atom.head == WITHIN)
        axes = [number for name in sorted(atom.names) if (number := axis_of(name)) is not None]
        if not bounded or not axes:
            continue
        assert isinstance(atom, (Mod, Opaque))
        num, den = (atom.num, atom.den) if isinstance(atom, Mod) else atom.args
        found = axis_step(num)
        if not state.ranges.less(num, den):
            if beyond is not None and found is not None and found[2].constant == 1 and _fixed(den):
                beyond.append((axes[0], found[0], den))
            else:
                sizes = [extent for number, extent in enumerate(pointer.shape) if f"@{number}" in num.names]
                state.ranges.divides.add((den, sizes[0]))
                fits = state.ranges.less(num, den)
                state.ranges.divides.discard((den, sizes[0]))
                if not fits:
                    raise state.refuse("TL520", f"the index `{shown(num)}` wraps around at {shown(den)}")
                state.spec.divides.append((den, sizes[0]))
                raise Again
        mark = "~wrapped"
        replaced = _replaced(offset, atom, var(mark))
        return _unwrapped(state, pointer, replaced.substitute({mark: num}), beyond)
    return offset


def unwrapped(state: State, pointer: Pointer) -> Pointer:
    """Elements of a tensor that is one axis of memory, without indices that wrap around if the host can check that they
    never do."""
    wraps = any(isinstance(atom, Mod) and axis_step(atom.num) is not None for atom in pointer.offset.atoms())
    if pointer.param not in state.spec.flat or not wraps:
        return pointer
    with_axes = {f"@{number}": extent - 1 for number, extent in enumerate(pointer.shape)}
    state.ranges.last.update(with_axes)
    try:
        return replace(pointer, offset=_unwrapped(state, pointer, pointer.offset, None))
    except Refused:
        return pointer
    finally:
        for name in with_axes:
            del state.ranges.last[name]


def _replaced(value: Sym, old: Atom, new: Sym) -> Sym:
    total = const(0)
    for mono, coef in value.terms:
        rest = Sym.of({tuple(atom for atom in mono if atom != old): coef})
        total = total + (rest * new if old in mono else Sym.of({mono: coef}))
    return total


def _view(state: State, pointer: Pointer, shape: Shape, conditions: list[Expr], reads: bool) -> Placed:
    """Where an access lies in the view that is chosen for its tensor, or in the first one that it fits.

    Views are the tensor's own shape with axes joined, and those that the steps of the address show: the host views the
    tensor so, which fails there unless it has as many elements.
    """
    spec, param = state.spec, pointer.param
    if param in spec.flat:
        spec.views[param] = shape
        return _Fit(state, pointer, shape, conditions, False, reads).placed()
    chosen = spec.views.get(param)
    own = [view for view in collapses(shape) if (param, view) not in spec.failed]
    stepped = [view for view in _stepped(state, pointer, shape, conditions) if (param, view) not in spec.failed]
    joined = [view for view in stepped if len(view) != len(shape)]  # else a check is plainer than a view
    first: Refused | None = None
    for views, may_ask, whole in (
        (own, False, True),
        (joined, False, True),
        (stepped, False, True),
        (own, False, False),
        (own, True, False),
        (stepped, True, True),
    ):
        if views is stepped and chosen is None and not may_ask:
            _Fit(state, pointer, shape, conditions, True).ask_strides()
        if views is own and may_ask and chosen is None:
            _ask_steps(state, pointer, shape, conditions)
        for view in views if chosen is None else [chosen]:
            assumed = dict(state.ranges.assumed)
            try:
                placed = _Fit(state, pointer, view, conditions, may_ask, reads).placed()
            except Refused as refused:
                first = first or refused
                state.ranges.assumed = assumed
                continue
            if whole and any(axis_of(name) is not None for c in placed.rest for name in names(c)):
                continue
            spec.views[param] = view
            return placed
    if isinstance(first, Below):
        raise first
    sizes = pointer.offset.names.union(*(extent.names for extent in (*pointer.shape, *shape)))
    named = {name.partition("/")[0] for name in sizes}
    if numbers := (named & spec.numbers.keys()) - spec.pinned or spec.passed_alike(named & spec.constants):
        spec.pinned |= numbers  # names hide that a number of blocks is one of blocks of this size
        spec.failed.clear()
        spec.views.clear()
        raise Again
    if chosen is not None:
        spec.failed.add((param, chosen))
        del spec.views[param]
        if any(view != chosen for view in (*own, *stepped)):
            raise Again
    raise first or state.refuse("TL521", f"the accesses to `{param}` fit no common shape")


def _stepped(state: State, pointer: Pointer, shape: Shape | None, conditions: list[Expr]) -> list[Shape]:
    """Views of a tensor of this shape by the steps of an address, the largest rank first."""
    ranges = state.ranges
    total = product(shape) if shape is not None else None
    bound = ranges.last.keys() | ranges.lets.keys() | ranges.unknown
    found: list[Shape] = []
    for guess in guesses(pointer.offset, _moving(state), pointer.shape):
        inner = product(guess[1:])
        first = total // inner if total is not None else None
        if first is None or first * inner != total:
            index = split(pointer.offset, guess)[0]
            masks = [more + index for c in conditions if (more := positive(c)) is not None and _fixed(more + index)]
            first = masks[0] if masks else next(iter(ranges.bounds(index))) + 1
        shown = total is None or all(one == other for one, other in state.spec.relations(first * inner, total))
        one_term = len(first.terms) == 1  # no tensor has as many rows as a sum of sizes
        if len(guess) > 1 and shown and one_term and _fixed(first) and not (first.names | inner.names) & bound:
            found.append((first, *guess[1:]))
    return sorted(found, key=len, reverse=True)


def _moving(state: State) -> frozenset[str]:
    """The places of blocks and the counters of loops."""
    return frozenset(name for name in state.ranges.last if axis_of(name) is None)


def _ask_steps(state: State, pointer: Pointer, shape: Shape, conditions: list[Expr]) -> None:
    """Where one step of an address can only be as far as all of the next smaller ones go, have the host check that."""
    ranges, offset = state.ranges, pointer.offset
    moving = {name: 0 for name in offset.names if axis_of(name) is not None or name in _moving(state)}
    own = frozenset().union(*(extent.names for extent in shape))
    params = state.spec.values.keys()
    blocks: set[str] = set()  # axes as long as the tile, which is as large as it likes
    left: dict[str, tuple[Sym, Sym]] = {}
    for name in sorted(moving.keys() - along(offset, _moving(state), pointer.shape)):
        ends = [more for c in conditions if (more := positive(c)) is not None and name in more.names]
        if axis_of(name) is None or not ends:
            count = ranges.last[name] + 1
            blocks |= {name} if axis_of(name) is not None else set()
        else:
            count = ends[-1].substitute(moving)
        left[name] = offset.substitute({name: 1}) - offset.substitute({name: 0}), count
    reached = const(1)
    while inner := sorted((axis_of(name) is None, name) for name, (step, _) in left.items() if step == reached):
        name = inner[0][1]
        end = reached * left.pop(name)[1]
        if all(step != end for step, _ in left.values()):
            for step in sorted((step for step, _ in left.values()), key=_factors):
                known = own if name not in blocks and end.names <= state.spec.sure else own - params
                if step != reached and step.names & known and equate(state, *_cancelled(end, step)):
                    raise Again
            return
        reached = end


def _factors(step: Sym) -> int:
    """How many sizes a step is the product of: smaller steps have fewer."""
    return max((len(mono) for mono, _ in step.terms), default=0)


def _cancelled(one: Sym, other: Sym) -> tuple[Sym, Sym]:
    """Two products without the factors that both have."""
    if len(one.terms) != 1 or len(other.terms) != 1:
        return one, other
    [(left, many)], [(right, more)] = one.terms, other.terms
    rest, kept = list(right), []
    for atom in left:
        if atom in rest:
            rest.remove(atom)
        else:
            kept.append(atom)
    return Sym.of({tuple(kept): many}), Sym.of({tuple(rest): more})


def _stepped_through(state: State, pointer: Pointer, conditions: list[Expr]) -> Shape | None:
    """The view by its steps that an access to an unknown tensor stays inside of, as its mask says."""
    for view in _stepped(state, pointer, None, conditions):
        try:
            placed = _Fit(state, pointer, view, conditions, False).placed()
        except Refused:
            continue
        if not any(axis_of(name) is not None for c in placed.rest for name in names(c)):
            return view
    return None


def _guess(state: State, pointer: Pointer, conditions: list[Expr]) -> Shape:
    """What an unknown tensor must look like for this access."""
    ranges, offset = state.ranges, pointer.offset
    moving = ranges.last.keys() | ranges.lets.keys() | ranges.unknown
    shapes = list(guesses(offset, _moving(state), pointer.shape, alone=True))
    bounds = [more for condition in conditions if (more := positive(condition)) is not None]
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
            for other in shapes if len(extent.terms) > 1 else ():
                _ask_ends(state, pointer, other, bounds)
            state.spec.least_rows.add(pointer.param)
            return (extent, *shape[1:])
    for shape in reversed(shapes):
        _ask_ends(state, pointer, shape, bounds)
    raise state.refuse("TL521", f"the shape of `{pointer.param}` is not known to the host code")


def _ask_ends(state: State, pointer: Pointer, shape: Shape, bounds: list[Sym]) -> None:
    """No tensor has as many rows as a sum of sizes: have the host check that inner indices end with their axes."""
    for part, extent in zip(split(pointer.offset, shape)[1:], shape[1:], strict=True):
        if not _inner(state, (part, part), (extent, extent), bounds):
            end = next(iter(state.ranges.bounds(part))) + 1
            if end.atom is not None and equate(state, end, extent):
                raise Again
            for number in (place for name in sorted(part.names) if (place := axis_of(name)) is not None):
                ask_divides(state, part, extent, pointer.shape[number])


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
    reads: bool = False
    beyond: list[tuple[int, Sym, Sym]] = field(default_factory=list)

    def placed(self) -> Placed:
        index = self.carried(split(self.pointer.offset, self.view))
        starts, axes, edge = [], [], []
        for place, (part, extent) in enumerate(zip(index, self.view, strict=True)):
            found = axis_step(part)
            if found is None or found[2].constant not in (0, 1):
                self.ask_strides()
            if found is None or (found[1] in axes and found[1] is not None):
                raise self.state.refuse(
                    "TL520", f"the address in `{self.pointer.param}` is not affine: `{shown(part)}`"
                )
            start, number, step = found
            if number is not None and step.constant != 1:
                if self.may_ask:
                    self.state.pin_sizes(step)
                raise self.state.refuse("TL520", f"`{self.pointer.param}` is read or written with a step of {step}")
            covered = self.inside(place, part, extent, number)
            edge += covered
            starts.append(start)
            axes.append(number)
        rest = tuple(c for c in self.conditions if c not in edge and not self.always(c))
        return Placed(
            self.pointer.param, tuple(starts), tuple(axes), self.pointer.shape, tuple(edge), rest, tuple(self.beyond)
        )

    def carried(self, index: tuple[Sym, ...]) -> list[Sym]:
        """With a whole extent taken from the next axis where an index counts down from the end of its own."""
        parts, ranges = list(index), self.state.ranges
        for place in range(len(parts) - 1, 0, -1):
            more = parts[place] + self.view[place]
            if not ranges.at_least_zero(parts[place]) and ranges.at_least_zero(more):
                parts[place - 1], parts[place] = parts[place - 1] - 1, more
        return parts

    def ask_strides(self) -> None:
        """Where the kernel steps by a size that is not the tensor's own, have the host check that they are equal."""
        if not self.may_ask or len(self.view) < 2:
            return
        offset = self.pointer.offset
        for name in (*(f"@{number}" for number in range(len(self.pointer.shape))), *self.state.blocks):
            step = offset.substitute({name: 1}) - offset.substitute({name: 0})
            number = axis_of(name) is not None and (step.constant or 0) > 1
            if step.atom is None and not number:
                continue
            if step == self.view[-1] or (axis_of(name) is None and step in self.pointer.shape):
                continue
            if equate(self.state, step, self.view[-1]):
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
            if like and any(equate(self.state, *pair) for pair in pairs):
                raise Again

    def always(self, condition: Expr) -> bool:
        value = positive(condition)
        if value is None or _fixed(value):
            return inside_always(self.state, condition)
        return self.state.ranges.at_least_zero(value - 1)

    def inside(self, place: int, index: Sym, extent: Sym, number: int | None) -> list[Expr]:
        """The conditions by which the index stays below the extent; refuses where it may leave the axis."""
        ranges, param = self.state.ranges, self.pointer.param
        first = index.substitute(dict.fromkeys(ranges.last, 0))
        valid = self.state.in_rows and all(self.ends_row(c, number) for c in self.conditions)
        valid = valid and not ranges.at_least_zero(-first - 1)  # the first row of the first block
        if not valid and not (index.names & ranges.unknown) and not ranges.at_least_zero(index):
            for bound in ranges.bounds(-index) if self.may_ask else ():
                self.state.pin_sizes(bound)
            text = f"the index `{shown(index)}` of `{param}` may be negative"
            if number is not None and any(self.keeps_natural(c, index) for c in self.conditions):
                raise Below(self.state.line, text, number, index)
            raise self.state.refuse("TL521", text)
        exact = [c for c in self.conditions if positive(c) == extent - index]
        if exact:
            return exact
        if ranges.less(index, extent):
            return []
        if any(ranges.at_least_zero(extent - end) for end in self.ends(index)):
            return []
        masked = [c for c in self.conditions if number is not None and f"@{number}" in names(c)]
        if self.reads and number is not None and not masked:
            self.beyond += [(number, index.substitute({f"@{number}": 0}), extent)] if place else []
            return []
        if self.may_ask:
            self.ask(index, extent, number)
        ends = list(self.ends(index))
        if place == 0 and (self.may_ask or not ends or param in self.state.spec.flat):
            return []  # what lies behind the end of a tensor is nobody's
        if self.may_ask and any(ranges.of_data(end.names) for end in ends) and not ranges.of_data(index.names):
            return []  # nor is what lies between the length that is loaded and the next row
        if ends:
            raise self.state.refuse(
                "TL522", f"the mask of `{param}` ends at {shown(ends[0])}, but the axis has {shown(extent)} elements"
            )
        raise self.state.refuse(
            "TL521", f"the index `{shown(index)}` may leave an axis of `{param}` of {shown(extent)}"
        )

    def ends_row(self, condition: Expr, number: int | None) -> bool:
        """True for a condition that leaves out the last elements of a row, never the first, whose place Triton uses."""
        more = positive(condition)
        return more is not None and step_of(more, f"@{number}").constant == -1

    def keeps_natural(self, condition: Expr, index: Sym) -> bool:
        """Whether an index is not negative where a condition holds."""
        more = positive(condition)
        return more is not None and self.state.ranges.at_least_zero(index - more + 1)

    def ends(self, index: Sym) -> Iterator[Sym]:
        """Where masks end along an axis."""
        for condition in self.conditions:
            more = positive(condition)
            if more is not None and _fixed(more + index):
                yield more + index

    def ask(self, index: Sym, extent: Sym, number: int | None) -> None:
        """Have the host check what is missing, and read again."""
        for condition in self.conditions:
            more = positive(condition)
            if more is not None and _fixed(bound := more + index) and equate(self.state, bound, extent):
                raise Again
        for pair in self.state.spec.alike:
            if extent in pair and not {pair, pair[::-1]} & {*self.state.spec.equal} and equate(self.state, *pair):
                raise Again
        self.ask_likeness()
        masked = [names(condition) for condition in self.conditions]
        if number is None or any(f"@{number}" in found and len(found) > 1 for found in masked):
            return
        size = self.pointer.shape[number]
        start = index.substitute({f"@{number}": 0})
        if start.is_zero and equate(self.state, size, extent):
            raise Again
        ask_divides(self.state, index, extent, size)


def inside_always(state: State, condition: Expr) -> bool:
    """True for a condition that holds whatever the launch passes."""
    value = positive(condition)
    return value is not None and state.ranges.surely_natural(value - 1)


def _fixed(value: Sym) -> bool:
    return not any(axis_of(name) is not None for name in value.names)


def names(expr: Expr) -> frozenset[str]:
    """The variables of every integer in an expression."""
    return frozenset().union(*(value.names for value in integers(expr)))
