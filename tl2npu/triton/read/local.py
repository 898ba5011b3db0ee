"""Memory on the chip that a kernel allocates itself: reads, writes and parts of it, as tiles of the IR.

A read is the memory itself as long as nothing writes it while the value lives; else the kernel is read again, and every
read of that allocation is a copy. A write of a part keeps the rest, where there may be something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tl2npu.kernel.symbolic import Mod, Opaque, Sym, const
from tl2npu.tile.expr import Const, Expr, Index, Load, axis, axis_of, integers, loads, substituted
from tl2npu.tile.ir import For, If, Map, Move, Region, Stmt, reads, statements, writes
from tl2npu.triton.read.addresses import axis_step, shown
from tl2npu.triton.read.asked import equate
from tl2npu.triton.read.build import broadcast, cast, is_float, operation
from tl2npu.triton.read.spec import Again
from tl2npu.triton.read.state import State
from tl2npu.triton.read.values import Local, LocalPointer, Shape, Tile, Value
from tl2npu.triton.refused import Refused

_ROUNDS = 64


@dataclass(frozen=True)
class Part:
    """A part of a tile of the IR, by its axes in memory: where it starts, and which axis of the value goes along."""

    start: tuple[Sym, ...]
    axes: tuple[int | None, ...]


@dataclass
class Memory:
    """The memory that a kernel has allocated so far.

    ``live``: whether a name of the function that is read now may be read behind the present statement; ``loops``: how
    many loops are around it, ``branches`` how many branches; ``depth``: allocated tile -> in how many loops;
    ``defined``: tiles that may hold something, ``sure`` those that do; ``copies``: tiles that are copies of memory, as
    buffers, since a name may be given again; ``allocated``: memory by its tile; ``pointed``: tiles read by pointers.
    """

    state: State
    live: Callable[[str], bool]
    loops: int = 0
    branches: int = 0
    depth: dict[str, int] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)
    copies: dict[str, object] = field(default_factory=dict)
    allocated: dict[str, Local] = field(default_factory=dict)
    pointed: set[str] = field(default_factory=set)

    def allocate(self, shape: Shape, dtype: str, site: tuple[int, int]) -> Local:
        """New memory; what it holds is not defined."""
        state = self.state
        order = tuple(range(len(shape)))
        if site in state.spec.turned:
            order = tuple(reversed(order))
        name = state.allocate(state.hint, tuple(shape[number] for number in order), dtype, "shared")
        self.depth[name] = self.loops
        self.defined.discard(name)
        self.sure.discard(name)
        if site in state.spec.filled:
            state.emit(Map(name, _zero(dtype), state.origin))
            self.sure.add(name)
        self.allocated[name] = Local(name, shape, dtype, tuple(const(0) for _ in shape), order, site)
        return self.allocated[name]

    # reading ------------------------------------------------------------------------------------------------------

    def read(self, pointer: LocalPointer, masked: bool = False) -> Tile:
        """The elements that pointers name, as they are now; ``masked``: some may lie outside and are not used."""
        state, local = self.state, pointer.local
        part = self.part(pointer, masked)
        if local.site in state.spec.copied or not self.is_whole(pointer, part):
            name = self.copied(pointer, part, "copy" if self.is_whole(pointer, part) else "part")
            self.copies[name] = state.buffers[name]
            return self.value(name, pointer.shape, part)
        return self.value(local.name, pointer.shape, part)

    def copied(self, pointer: LocalPointer, part: Part, suffix: str) -> str:
        """A tile of its own with the elements that pointers name."""
        state = self.state
        region = self.region(pointer, part)
        shape = tuple(extent for extent in region.extent if extent is not None)
        hint = f"{state.hint}_{suffix}" if state.hint in state.taken else state.hint
        name = state.allocate(hint, shape, pointer.local.dtype)
        whole = Region(name, tuple(const(0) for _ in shape), shape)
        state.emit(Move(region, whole, state.origin))
        return name

    def value(self, name: str, shape: Shape, part: Part) -> Tile:
        """What a tile holds, by the axes of the value."""
        order = [number for number in part.axes if number is not None]
        return Tile(shape, Load(name, tuple(axis(number) for number in order), self.state.buffers[name].dtype))

    # writing ------------------------------------------------------------------------------------------------------

    def write(self, pointer: LocalPointer, value: Tile, mask: Expr | None) -> None:
        """Write a tile to the elements that pointers name; with a mask only those for which it holds."""
        state, local = self.state, pointer.local
        if len(value.shape) > len(pointer.shape):
            raise state.refuse("TL549", "a tile of more axes than its pointers")
        if is_float(value.dtype) and not is_float(local.dtype) and any(True for _ in loads(value.expr)):
            raise state.refuse("TL546", f"a store to `{local.name}` cuts off decimals, a copy may round them")
        value = cast(broadcast(value, pointer.shape), local.dtype)
        part = self.part(pointer, mask is not None)
        if mask is not None and self.holds(pointer):
            old = self.now(pointer)
            value = operation("select", [Tile(pointer.shape, mask), value, old], state.line)
        order = tuple(number for number in part.axes if number is not None)
        units = {f"@{number}": 0 for number in range(len(pointer.shape)) if number not in order}
        value = Tile(pointer.shape, substituted(value.expr, units))
        if self.is_whole(pointer, part):
            self.changed(local)
            self.covered(local)
            state.write(local.name, value, order)
            return
        flat = tuple(pointer.shape[number] for number in order)
        name = state.allocate(f"{local.name}_part", flat, local.dtype)
        state.write(name, value, order)
        if not self.holds(pointer):
            self.fill(local)
        self.changed(local)
        state.emit(Move(Region(name, tuple(const(0) for _ in flat), flat), self.region(pointer, part), state.origin))

    def now(self, pointer: LocalPointer) -> Tile:
        """What pointers name, for a write that follows at once."""
        part = self.part(pointer)
        if self.is_whole(pointer, part):
            return self.value(pointer.local.name, pointer.shape, part)
        name = self.copied(pointer, part, "part")
        return self.value(name, pointer.shape, part)

    def add(self, pointer: LocalPointer, value: Tile, mask: Expr | None) -> None:
        """Add a tile to the elements that pointers name, several times where they name an element several times."""
        state = self.state
        if mask is not None:
            zero = Tile((), _zero(pointer.local.dtype))
            value = operation("select", [Tile(pointer.shape, mask), value, zero], state.line)
        index = pointer.index[0]
        if len(pointer.shape) != 1 or not isinstance(index.atom, Mod):
            old = self.now(pointer)
            total = operation("add", [old, cast(broadcast(value, pointer.shape), pointer.local.dtype)], state.line)
            self.write(pointer, total, None)
            return
        length, bins = pointer.shape[0], index.atom.den
        if index.atom.num != axis(0) or bins != pointer.local.shape[0]:
            raise self.scattered(index)
        if length.constant is None or bins.constant is None:
            self.state.pin_sizes(length, bins)
            raise self.scattered(index)
        rounds, rest = divmod(length.constant, bins.constant)
        if rounds > _ROUNDS or rest:
            raise state.refuse("TL590", f"`{index}` repeats {length.constant} / {bins.constant} times")
        if any(axis_of(name) is not None for number in integers(value.expr) for name in number.names):
            value = state.stored(value, "added")
        elif not is_float(value.dtype):
            value, rounds = operation("mul", [Tile((), value.expr), rounds], state.line), 1
        for number in range(rounds):
            part = Tile((bins,), substituted(value.expr, {"@0": axis(0) + number * bins}))
            self.add(self.leading(pointer.local, (bins,)), part, None)

    def fill(self, local: Local) -> None:
        """Have the memory begin as 0: a part of it is written before the rest is."""
        if local.site not in self.state.spec.filled:
            self.state.spec.filled.add(local.site)
            raise Again

    def holds(self, pointer: LocalPointer) -> bool:
        """True if elements that a write leaves out may hold something; it is made sure then that they do."""
        name = pointer.local.name
        if name not in self.defined | self.sure and self.depth[name] == self.loops:
            return False
        if name not in self.sure:
            self.fill(pointer.local)
        return True

    def covered(self, local: Local) -> None:
        """Note a write of all elements, which is seen from here on if it is made once at all."""
        if self.loops == self.depth[local.name] and not self.branches:
            self.sure.add(local.name)

    def changed(self, local: Local) -> None:
        """Note a write; where a value that was read before still lives, the kernel is read again with copies."""
        state = self.state
        self.defined.add(local.name)
        if local.site in state.spec.copied:
            return
        alive = len(state.frames) > 1 or any(
            _refers(value, local.name) and self.live(name) for name, value in state.frame.env.items()
        )
        if alive:
            state.spec.copied.add(local.site)
            raise Again

    def carried(self, body: tuple[Stmt, ...]) -> bool:
        """True if a turn of a loop reads memory that it has not written as a whole before."""
        memory = {name for name, buffer in self.state.buffers.items() if buffer.scope == "shared"}
        written: set[str] = set()
        for stmt in statements(body):
            if reads(stmt) & memory - written:
                return True
            whole = not isinstance(stmt, Move) or self.is_tile(stmt.dst)
            if stmt in body and not isinstance(stmt, (For, If)) and whole:
                written |= writes(stmt)
        return False

    # places -------------------------------------------------------------------------------------------------------

    def whole(self, local: Local) -> LocalPointer:
        """Pointers to all elements."""
        return LocalPointer(local, tuple(axis(number) for number in range(len(local.shape))), local.shape)

    def leading(self, local: Local, sizes: Shape) -> LocalPointer:
        """Pointers to the leading elements."""
        return LocalPointer(local, tuple(axis(number) for number in range(len(sizes))), sizes)

    def part(self, pointer: LocalPointer, masked: bool = False) -> Part:
        """Where pointers lie. Refuses indices that are no start and consecutive elements along each axis."""
        local, starts, axes = pointer.local, [], []
        for place in local.order:
            index = self.inside(pointer, place, masked)
            found = axis_step(index)
            if found is None or found[2].constant not in (0, 1) or (found[1] is not None and found[1] in axes):
                raise self.scattered(pointer.index[place])
            starts.append(found[0] + local.start[place])
            axes.append(found[1])
        missing = [n for n, extent in enumerate(pointer.shape) if n not in axes and extent.constant != 1]
        if missing:
            raise self.scattered(pointer.index[0])
        return Part(tuple(starts), tuple(axes))

    def inside(self, pointer: LocalPointer, place: int, masked: bool) -> Sym:
        """The index along an axis, without a remainder that changes nothing. Refuses where it may leave the memory."""
        state, index = self.state, pointer.index[place]
        atom, name = index.atom, pointer.local.name
        last = {f"@{number}": size - 1 for number, size in enumerate(pointer.shape)}
        state.ranges.last.update(last)
        try:
            if isinstance(atom, Mod) and state.ranges.less(atom.num, atom.den):
                index = atom.num
            if index.names & state.ranges.unknown:
                raise state.refuse("TL590", f"the index `{shown(index)}` of `{name}` is loaded")
            if not state.ranges.at_least_zero(index):
                raise state.refuse("TL590", f"the index `{shown(index)}` of `{name}` may be negative")
            if masked and not state.ranges.less(index, pointer.local.shape[place]):
                sizes = state.ranges.named(index)
                self.state.pin_sizes(
                    pointer.local.shape[place], sizes, *(state.ranges.last.get(n, sizes) for n in sizes.names)
                )
                raise state.refuse("TL590", f"the index `{shown(index)}` of `{name}` may be too large")
        finally:
            for key in last:
                state.ranges.last.pop(key, None)
        return index

    def is_whole(self, pointer: LocalPointer, part: Part) -> bool:
        """True if pointers name every element of the memory once."""
        shape = self.state.buffers[pointer.local.name].shape
        extents = [pointer.shape[number] if number is not None else None for number in part.axes]
        return all(start.is_zero for start in part.start) and extents == list(shape)

    def is_tile(self, region: Region) -> bool:
        """True if a region is all of a tile."""
        buffer = self.state.buffers.get(region.buffer)
        return buffer is not None and region.extent == buffer.shape

    def region(self, pointer: LocalPointer, part: Part) -> Region:
        """The part of the memory that pointers name."""
        extents = tuple(pointer.shape[number] if number is not None else None for number in part.axes)
        return Region(pointer.local.name, part.start, extents)

    def scattered(self, index: Sym) -> Refused:
        return self.state.refuse("TL590", f"the index `{shown(index)}` names no consecutive elements")

    def same(self, one: Sym, other: Sym) -> bool:
        """True if two sizes are equal, by the numbers that the launch passes where they have other names."""
        if one != other and (left := self.state.spec.number(one)) is not None and left == self.state.spec.number(other):
            self.state.pin_sizes(one, other)
        return one == other

    def fits(self, one: Sym, other: Sym) -> bool:
        """True if a size is at least as large as another, or the host can check that they are equal."""
        if self.same(one, other) or self.state.ranges.at_least_zero(one - other):
            return True
        if equate(self.state, one, other):
            raise Again
        return False

    def origin(self, value: Tile) -> Local | None:
        """The memory that a value is, if it is one. Refuses copies of memory, which may have changed since."""
        expr = value.expr
        if not isinstance(expr, Load):
            return None
        buffer = self.state.buffers.get(expr.buffer)
        if self.copies.get(expr.buffer) is buffer and buffer is not None:
            raise self.state.refuse("TL591", f"`{expr.buffer}` is a tensor of memory that is written again")
        local = self.allocated.get(expr.buffer)
        if local is None or self.value(expr.buffer, value.shape, self.part(self.whole(local))) != value:
            return None
        if local.name in self.pointed:
            raise self.state.refuse("TL591", f"`{local.name}` is loaded by pointers and used as a buffer")
        return local


def _zero(dtype: str) -> Const:
    return Const(0.0 if is_float(dtype) else 0, dtype)


def _refers(value: Value, name: str) -> bool:
    if isinstance(value, tuple):
        return any(_refers(item, name) for item in value)
    return isinstance(value, Tile) and any(item.buffer == name for item in loads(value.expr))


def bounds(state: State, sizes: Shape, shape: Shape) -> Expr | None:
    """The condition by which an element is among the leading ``sizes`` of a ``shape``; None if all are."""
    found: Tile | None = None
    for number, (size, extent) in enumerate(zip(sizes, shape, strict=True)):
        for part in _least(state.ranges.named(size)):
            if part != extent:
                inside = operation("lt", [Tile(shape, Index(axis(number))), Tile((), Index(part))], state.line)
                found = inside if found is None else operation("and", [found, inside], state.line)
    return None if found is None else found.expr


def _least(size: Sym) -> Iterator[Sym]:
    """The numbers of which a size is the smallest."""
    if isinstance(size.atom, Opaque) and size.atom.head == "min":
        for part in size.atom.args:
            yield from _least(part)
    else:
        yield size
