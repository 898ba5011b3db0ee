"""The kernel under construction: its buffers, the statements so far, and which name holds what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tl2npu.kernel.element_types import word
from tl2npu.kernel.symbolic import Sym, var
from tl2npu.tile.expr import Call, Const, Expr, Index, Load, axis, axis_of, identity, loads, rebuilt, substituted, walk
from tl2npu.tile.ir import Buffer, Map, Origin, Scope, Stmt, writes
from tl2npu.tile.unstored import Beyond
from tl2npu.triton.read.build import most
from tl2npu.triton.read.masks import Facts
from tl2npu.triton.read.ranges import Ranges
from tl2npu.triton.read.spec import Again, Source, Spec
from tl2npu.triton.read.values import Shape, Tile, Value
from tl2npu.triton.refused import Refused

_MOST_SPLIT = 3
"""Branches that are read with all that follows: each may double the kernel."""
_KEYWORDS = frozenset({"T", "tilelang", "main", "i", "j"})


@dataclass
class Frame:
    """The names of one function; ``own``: the buffer that a name's tile is written to; ``source``: the module around
    the function, None for that of the kernel."""

    env: dict[str, Value] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    pinned: set[str] = field(default_factory=set)
    source: Source | None = None


@dataclass(frozen=True)
class Places:
    """A vector of integers that was loaded: from where, along which axis of the tensor, and under which conditions on
    its elements; ``other``: what it has elsewhere."""

    param: str
    start: Shape
    axis: int
    conditions: tuple[Expr, ...]
    other: Expr
    dtype: str


@dataclass
class State:
    """Everything that reading a kernel changes."""

    spec: Spec
    buffers: dict[str, Buffer] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    out: list[Stmt] = field(default_factory=list)
    ranges: Ranges = field(default_factory=Ranges)
    taken: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    line: int = 0
    hint: str = "tile"
    direct: object = None
    spare: frozenset[object] = frozenset()
    beyond: list[tuple[str, Beyond]] = field(default_factory=list)
    within: dict[tuple[Sym, Sym], None] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    """Loops over a block's share of an axis whose tiles are dealt out to the blocks instead, by their lines."""
    zeros: dict[Load, tuple[Expr, ...]] = field(default_factory=dict)
    """Tiles that are 0 wherever one of these conditions does not hold."""
    sizes: dict[str, float] = field(default_factory=dict)
    """The size that no integer in a buffer exceeds."""
    loaded: dict[str, frozenset[str]] = field(default_factory=dict)
    """The tensors of which a buffer holds parts, or whose elements what it holds is computed from."""
    places: dict[str, Places] = field(default_factory=dict)
    """Vectors of integers that were loaded, each by a name of its own, which no buffer has."""
    indices: dict[str, Expr] = field(default_factory=dict)
    """What integers in a buffer are in terms of ``places``, as long as they are that."""
    in_rows: bool = False
    """A row of memory is placed, behind the conditions on the row."""
    made: dict[str, Expr] = field(default_factory=dict)
    """What was written to each buffer first: an address, perhaps, that was not known to be one."""
    gathered: set[str] = field(default_factory=set)
    """Tensors whose elements are loaded again where they are places."""
    facts: Facts = field(default_factory=dict)
    """What the branches around say."""
    fixed: set[str] = field(default_factory=set)
    """Buffers that no name may take for its own: an extension refers to them."""

    @property
    def frame(self) -> Frame:
        """The names of the function that is read now."""
        return self.frames[-1]

    @property
    def origin(self) -> Origin:
        """Where the statement that is read now stands."""
        return Origin(self.line)

    def refuse(self, code: str, message: str, help: str = "") -> Refused:
        """A refusal at the statement that is read now."""
        return Refused(code, self.line, message, help)

    def pin_sizes(self, *values: Sym) -> None:
        """Read again with the sizes in ``values`` as the numbers that the launch passes, if that is new."""
        spec = self.spec
        found = {name for value in values for name in value.names if name in spec.numbers and name not in spec.pinned}
        if found:
            spec.pinned |= found
            raise Again

    def take_type(self, param: str, dtype: str) -> None:
        """Read again with a tensor of which nothing shows the element type, and those that have its type, as one of
        ``dtype``, if that is new. What a kernel multiplies is taken for one type."""
        spec = self.spec
        owners = {
            spec.kin.get(name, name) for name in ({param} | spec.multiplied if param in spec.multiplied else {param})
        }
        kin = {name for name in spec.assumed if spec.kin.get(name) in owners and spec.tensors[name].dtype == "float32"}
        spec.tensors.update({name: replace(spec.tensors[name], dtype=dtype) for name in kin})
        if kin:
            raise Again

    def split(self, place: tuple[int, int] | None) -> None:
        """Read again with what follows the ``if`` at a place in both of its branches, if that is new."""
        if place is not None and place not in self.spec.split and len(self.spec.split) < _MOST_SPLIT:
            self.spec.split.add(place)
            raise Again

    # names --------------------------------------------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        """A name that nothing in the kernel has."""
        name, number = hint, 1
        while name in self.taken or name in _KEYWORDS:
            name, number = f"{hint}_{number}", number + 1
        self.taken.add(name)
        return name

    def allocate(self, hint: str, shape: Shape, dtype: str, scope: Scope = "fragment") -> str:
        """A new tile. The scope ``shared`` is that of memory that the kernel itself allocates."""
        if len(shape) > 2:
            raise self.refuse("TL525", "a tile of more than two axes")
        if dtype.startswith("float8"):
            raise self.refuse("TL539", f"a tile of {dtype}")
        known = self.buffers.get(hint)
        name = self.fresh(hint if known is None or known.dtype == dtype else f"{hint}_{word(dtype)}")
        self.buffers[name] = Buffer(name, shape, "int8" if dtype == "bool" else dtype, scope)
        return name

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the body that is read now."""
        self.out.append(stmt)
        if isinstance(stmt, Map):
            self.made.setdefault(stmt.dst, stmt.value)
        made = self.resolved(stmt.value) if isinstance(stmt, Map) else None
        gone = writes(stmt) or frozenset()  # an extension has statements of its own
        self.indices = {name: value for name, value in self.indices.items() if name not in gone}
        if isinstance(stmt, Map) and made is not None and made.dtype in ("int32", "int64"):
            found = [item.buffer for item in loads(made)]
            if found and all(name in self.places for name in found):
                self.indices[stmt.dst] = made
        size = most(stmt.value, self.sizes) if isinstance(stmt, Map) else math.inf
        if self.zeros or self.sizes:
            self.zeros = {tile: parts for tile, parts in self.zeros.items() if tile.buffer not in gone}
            self.sizes = {name: value for name, value in self.sizes.items() if name not in gone}
        if isinstance(stmt, Map):
            self.loaded[stmt.dst] = self.tensors(stmt.value)
        if isinstance(stmt, Map) and size < math.inf:
            self.sizes[stmt.dst] = size

    def resolved(self, expr: Expr) -> Expr:
        """With ``places`` for what tiles hold that are computed from them."""

        def part(item: Expr) -> Expr | None:
            if not isinstance(item, Load) or item.buffer not in self.indices:
                return None
            return substituted(self.indices[item.buffer], {f"@{n}": at for n, at in enumerate(item.index)})

        return rebuilt(expr, part)

    def tensors(self, value: Expr) -> frozenset[str]:
        """The tensors whose elements an expression computes with, unless it converts them to integers, or compares them
        with a fraction."""
        if isinstance(value, Load):
            return self.loaded.get(value.buffer, frozenset({value.buffer}))
        if not isinstance(value, Call) or (value.op == "cast" and not value.dtype.startswith(("float", "bfloat"))):
            return frozenset()
        if any(isinstance(arg, Const) and not float(arg.value).is_integer() for arg in value.args):
            return frozenset()
        return frozenset[str]().union(*map(self.tensors, value.args))

    @contextmanager
    def body(self) -> Iterator[list[Stmt]]:
        """Statements go to a body of their own."""
        outer, self.out = self.out, []
        known = self.indices
        self.forget()
        try:
            yield self.out
        finally:
            self.out = outer
            self.indices = {name: value for name, value in known.items() if self.indices.get(name) is value}
            self.forget()

    def forget(self) -> None:
        """Where statements may run more than once or not at all, nothing is known of what tiles hold."""
        self.zeros.clear()
        self.sizes.clear()

    def snapshot(self) -> tuple[object, ...]:
        """What :meth:`restore` goes back to."""
        frames = [Frame(dict(f.env), dict(f.own), set(f.pinned), f.source) for f in self.frames]
        kept = dict(self.ranges.lets), set(self.used), set(self.ranges.unknown), set(self.fixed), self.indices
        return dict(self.buffers), frames, list(self.out), set(self.taken), list(self.beyond), *kept

    def restore(self, saved: tuple[object, ...]) -> None:
        """Forget everything that was read since the snapshot, which may be used once."""
        self.forget()
        buffers, frames, out, taken, beyond, lets, used, unknown, fixed, indices = saved
        self.buffers, self.taken, self.used, self.beyond = buffers, taken, used, beyond  # type: ignore[assignment]
        self.ranges.lets, self.ranges.unknown, self.fixed = lets, unknown, fixed  # type: ignore[assignment]
        self.indices = indices  # type: ignore[assignment]
        self.out[:] = out  # type: ignore[call-overload]
        for frame, kept in zip(self.frames, frames, strict=True):  # type: ignore[call-overload]
            frame.env, frame.own, frame.pinned = kept.env, kept.own, kept.pinned

    # tiles --------------------------------------------------------------------------------------------------------

    def order(self, value: Tile) -> tuple[int, ...]:
        """The order of axes in which the tile is stored best: transposed if everything in it is."""
        orders = {
            tuple(number for part in item.index if (number := _axis(part)) is not None)
            for item in loads(value.expr)
            if len(item.index) == 2
        }
        orders = {order for order in orders if len(order) == 2}
        return (1, 0) if orders == {(1, 0)} else tuple(range(len(value.shape)))

    def stored(self, value: Tile, hint: str, dtype: str | None = None) -> Tile:
        """The same tile in a buffer, if it is not in one already: its expression is a single load."""
        expr = value.expr
        if isinstance(expr, Load) and dtype in (None, value.dtype) and len(expr.index) == len(value.shape):
            return value
        order = self.order(value)
        wish = (_described(expr) if hint != self.hint else "") or hint
        name = self.allocate(wish, tuple(value.shape[number] for number in order), dtype or value.dtype)
        return self.write(name, value, order)

    def write(self, name: str, value: Tile, order: tuple[int, ...]) -> Tile:
        """Write a tile to a buffer whose axes are those of the tile in ``order``."""
        turned = {f"@{number}": axis(place) for place, number in enumerate(order)}
        expr = substituted(value.expr, turned)
        zeros = self.zero_beyond(value.expr)
        buffer = self.buffers[name]
        if buffer.dtype != value.dtype and not (buffer.dtype == "int8" and value.dtype == "bool"):
            expr = Call("cast", (expr,), buffer.dtype) if not isinstance(expr, Const) else expr
        expr = rebuilt(expr, lambda part: self._rounded(part, name, buffer.shape))
        if not (isinstance(expr, Load) and expr.buffer == name):
            if any(item.buffer == name and item.index != identity(len(buffer.shape)) for item in loads(expr)):
                raise self.refuse("TL547", f"`{name}` is computed from its own elements at other places")
            self.ranges.fitting([item.value for item in walk(expr) if isinstance(item, Index)], buffer.shape)
            self.emit(Map(name, expr, self.origin))
        index = tuple(axis(number) for number in order)
        found = Load(name, index, buffer.dtype)
        if zeros:
            self.zeros[found] = zeros
        return Tile(value.shape, found)

    def zero_beyond(self, expr: Expr) -> tuple[Expr, ...]:
        """Conditions where one of them does not hold, this is 0."""
        while isinstance(expr, Call) and expr.op == "cast":
            expr = expr.args[0]
        return self.zeros.get(expr, ()) if isinstance(expr, Load) else ()

    def _rounded(self, expr: Expr, name: str, shape: Shape) -> Expr | None:
        """Arithmetic of 16 bits or of integers that is converted, by way of a tile: as one expression it would not be
        rounded, or not wrap around."""
        if not isinstance(expr, Call) or expr.op != "cast" or not _is_narrow(expr.args[0]):
            return None
        half = self.allocate(f"{name}_half", shape, expr.args[0].dtype)
        inner = rebuilt(expr.args[0], lambda part: self._rounded(part, name, shape))
        self.emit(Map(half, inner, self.origin))
        return Call("cast", (Load(half, identity(len(shape)), expr.args[0].dtype),), expr.dtype)

    def assign(self, name: str, value: Value) -> None:
        """Give a name a value; tiles with data go to the buffer of the name."""
        frame = self.frame
        view = isinstance(value, Tile) and len(value.shape) > 2 and isinstance(value.expr, Load)
        if not isinstance(value, Tile) or view or not self._has_data(value, name):
            frame.env[name] = value
            return
        direct = isinstance(value.expr, Load) and len(value.expr.index) == len(value.shape)
        own = frame.own.get(name)
        if direct and (own is None or name not in frame.pinned):
            assert isinstance(value.expr, Load)
            frame.env[name] = value
            buffer = self.buffers.get(value.expr.buffer)
            memory = buffer is not None and buffer.scope == "shared"  # allocated by the kernel: no name owns it
            if not memory and own is None and value.expr.buffer not in self._referenced(name):
                frame.own[name] = value.expr.buffer
            return
        order = self._pinned_order(name, own) or self.order(value)
        shape = tuple(value.shape[number] for number in order)
        if own is not None and (self.buffers[own].shape, self.buffers[own].dtype) == (shape, _stored(value.dtype)):
            if not (direct and value.expr.buffer == own):  # type: ignore[union-attr]
                own = self._released(name, own)
        elif own is not None and name in frame.pinned:
            raise self.refuse("TL541", f"`{name}` changes its shape or element type in a loop or branch")
        else:
            own = None
        if own is None:
            own = self.allocate(name, shape, value.dtype)
        frame.own[name] = own
        frame.env[name] = self.write(own, value, order)

    def _pinned_order(self, name: str, own: str | None) -> tuple[int, ...] | None:
        """The order of axes that the next turn of a loop expects in the buffer of a matrix."""
        value = self.frame.env.get(name)
        if name not in self.frame.pinned or not isinstance(value, Tile) or not isinstance(value.expr, Load):
            return None
        order = tuple(number for part in value.expr.index if (number := _axis(part)) is not None)
        return order if value.expr.buffer == own and sorted(order) == [0, 1] and len(value.shape) == 2 else None

    def _has_data(self, value: Tile, name: str) -> bool:
        if name in self.frame.pinned and name in self.frame.own:
            return True
        return value.dtype != "bool" and any(True for _ in loads(value.expr))

    def _referenced(self, name: str) -> set[str]:
        """The buffers that other names than ``name`` of this function still refer to."""
        found = set(self.fixed)
        for frame in self.frames:
            for key, value in frame.env.items():
                if isinstance(value, Tile) and not (frame is self.frame and key == name):
                    found |= {item.buffer for item in loads(value.expr)}
        return found

    def _released(self, name: str, own: str) -> str | None:
        """The buffer of a name, after every other name that refers to it got a copy; None if a new one is better."""
        if own not in self._referenced(name):
            return own
        if name not in self.frame.pinned:
            return None
        copy: str | None = None
        for frame in self.frames:
            for key, value in frame.env.items():
                if (frame is self.frame and key == name) or not isinstance(value, Tile):
                    continue
                if any(item.buffer == own for item in loads(value.expr)):
                    if copy is None:
                        buffer = self.buffers[own]
                        copy = self.allocate(f"{own}_old", buffer.shape, buffer.dtype)
                        whole = Load(own, identity(len(buffer.shape)), buffer.dtype)
                        self.emit(Map(copy, whole, self.origin))
                    frame.env[key] = Tile(value.shape, _renamed(value.expr, own, copy))
        return own

    def pin(self, name: str, value: Tile) -> None:
        """Give a name a buffer that all later values of it go to, as a loop or branch asks for.

        It is that name's alone: what another name refers to must outlive every turn of the loop.
        """
        frame = self.frame
        own = frame.own.get(name)
        order = self.order(value)
        shape = tuple(value.shape[number] for number in order)
        alone = own is not None and own not in self._referenced(name)
        direct = alone and isinstance(value.expr, Load) and value.expr.buffer == own
        if own is None or not direct or self.buffers[own].shape != shape:
            if not alone or own is None or (self.buffers[own].shape, self.buffers[own].dtype) != (shape, value.dtype):
                own = self.allocate(name, shape, value.dtype)
            frame.own[name] = own
            frame.env[name] = self.write(own, value, order)
        self.indices = {key: value for key, value in self.indices.items() if key != own}
        frame.pinned.add(name)

    def block_index(self, number: int) -> Sym:
        """The place of the block along an axis of the grid."""
        return var(self.blocks[number])

    def target(self, node: object, suffix: str, shape: Shape, dtype: str) -> str:
        """The buffer that a value goes to: the assigned name's own, where ``node`` is all that is assigned.

        The first of ``spare`` goes there, too: the assigned value is made from it in place.
        """
        if node is not self.direct and node not in self.spare:
            return self.allocate(f"{self.hint}_{suffix}", shape, dtype)
        self.spare = frozenset()
        own = self.frame.own.get(self.hint)
        if own is not None and self._free(own, shape, dtype):
            return own
        name = self.allocate(self.hint, shape, dtype)
        if self.hint not in self.frame.pinned:
            self.frame.own[self.hint] = name
        return name

    def _free(self, own: str, shape: Shape, dtype: str) -> bool:
        """True if a buffer has this shape and type, and only the assigned name refers to it."""
        buffer = self.buffers[own]
        return (buffer.shape, buffer.dtype) == (shape, dtype) and own not in self._referenced(self.hint)

    def accumulator(self, node: object, acc: Tile, dtype: str) -> str:
        """The buffer that a product is added to, with the value of ``acc`` in it."""
        own = self.frame.own.get(self.hint) if node is self.direct else None
        if own is not None and self._free(own, acc.shape, dtype):
            self.write(own, acc, (0, 1))
            return own
        name = self.allocate(f"{self.hint}_acc", acc.shape, dtype)
        self.write(name, acc, (0, 1))
        return name


def _is_narrow(expr: Expr) -> bool:
    if not isinstance(expr, Call) or not any(True for _ in loads(expr)):
        return False
    wraps = expr.dtype.startswith(("int", "uint")) and expr.op in ("add", "sub", "mul", "shl")
    return wraps or (
        expr.dtype in ("float16", "bfloat16") and expr.op not in ("cast", "select", "neg", "abs", "max", "min")
    )


def _stored(dtype: str) -> str:
    return "int8" if dtype == "bool" else dtype


def _axis(part: Sym) -> int | None:
    return axis_of(str(part)) if part.atom is not None else None


def _described(expr: Expr) -> str:
    """A name for a converted tile, ``p_half``, or a function of one, ``x_exp``; empty for anything else."""
    if not isinstance(expr, Call) or len(expr.args) != 1 or not isinstance(expr.args[0], Load):
        return ""
    return f"{expr.args[0].buffer}_{word(expr.dtype) if expr.op == 'cast' else expr.op}"


def _renamed(expr: Expr, old: str, new: str) -> Expr:
    return rebuilt(
        expr, lambda item: Load(new, item.index, item.dtype) if isinstance(item, Load) and item.buffer == old else None
    )
