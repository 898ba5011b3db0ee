"""The instructions that a ``T.Parallel`` becomes, as memory planning sees them: which tiles each of them touches.

A port of what matters here of ``src/transform/ascend_lower_parallel_to_vector.cc`` (95acbd7f): the tiles that are added
for parts of an expression (``CreateTempBufferLike``), for vectors spread over a tile (``CreateBroadcastBuffer``,
with a workspace of two bytes for each element) and for a destination in global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tl2npu.checks.memory_plan.tiles import Halved, Tiles
from tl2npu.checks.operators.expr import Expr
from tl2npu.dialects.lifetimes import Tile
from tl2npu.kernel.model import Buffer, Memory, Operand, Range
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.symbolic import const

_UNARY = ("exp", "log", "sqrt", "rsqrt", "abs", "bitwise_not")
_BINARY = ("+", "-", "*", "/", "&", "|", "<<", ">>")
_TWO = ("max", "min", "bitwise_and", "bitwise_or", "shift_left", "shift_right")
_CASTS = ("cast", "Cast", "astype")


@dataclass(frozen=True, eq=False)
class Touched:
    """One instruction: the tiles that it reads and writes, by number."""

    reads: tuple[Tile, ...]
    writes: tuple[Tile, ...]


@dataclass(frozen=True, eq=False)
class Vectorised:
    """The instructions of a nest; ``in_rows``: in a loop over the rows."""

    touched: list[Touched]
    in_rows: bool


@dataclass(eq=False)
class Nest:
    """The loops of a ``T.Parallel`` with more than one turn, the outer one (None: there is one only) and the inner.

    ``turns``: extent of a serial loop around nothing but the nest, which the compiler takes for part of the vector.
    ``halved`` are the loops of which each vector core has half the turns.
    """

    outer: Range | None
    inner: Range
    halved: frozenset[Range]
    tiles: Tiles
    is_fixed: Callable[[Expr], bool]
    turns: tuple[Halved, ...] = ()
    _rows: bool = field(default=False, init=False)

    def vectorise(self, stores: Sequence[tuple[Operand, Expr]]) -> Vectorised | None:
        """The instructions of the stores in the nest; None if it becomes a loop over the elements."""
        whole = self.outer is not None and all(self._is_whole(target, value) for target, value in stores)
        self._rows = self.outer is not None and not whole
        found: list[Touched] = []
        for target, value in stores:
            if not self._is_vector(target):
                return None
            made = self._store(target, value, whole)
            if made is None:
                return None
            found += made
        return Vectorised(found, self._rows)

    def _is_vector(self, target: Operand) -> bool:
        dims = target.dims
        if not dims or len(dims) != len(target.buffer.shape) or len(dims) > 3:
            return False
        return dims[-1].lo.depends_on(str(self.inner.var)) or target.buffer.memory is Memory.L1

    def _is_whole(self, target: Operand, value: Expr) -> bool:
        """Whether whole tiles are computed: all operands are tiles, or vectors that can be spread."""
        assert self.outer is not None
        dims = target.dims
        if not dims or len(dims) < 2 or not dims[-2].lo.depends_on(str(self.outer.var)):
            return False
        tiles = any(len(load.buffer.shape) == 2 for load in value.loads)
        for load in value.loads:
            lows = [dim.lo for dim in load.dims or ()]
            both = all(any(lo.depends_on(str(item.var)) for lo in lows) for item in (self.outer, self.inner))
            if not both and (tiles or not self._spreads(load)):
                return False
        return True

    def _spreads(self, load: Operand) -> bool:
        """A vector of the rows or of the columns from its first element on."""
        if len(load.buffer.shape) != 1 or not load.dims or len(load.dims) != 1:
            return False
        return any(item is not None and load.dims[0].lo == item.var for item in (self.outer, self.inner))

    # one store -------------------------------------------------------------------------------------------------------

    def _store(self, target: Operand, value: Expr, whole: bool) -> list[Touched] | None:
        found: list[Touched] = []
        is_global = target.buffer.memory is Memory.GM
        out = -1 if is_global else self.tiles.buffer(target.buffer)
        if is_global and not _is_cast(value):
            out = self._temporary(target.buffer, both=self.outer is not None)
        spread: dict[int, Tile] = {}
        if whole and not any(len(load.buffer.shape) == 2 for load in value.loads):
            for part in value.walk():
                load = part.operand
                if load is not None and self._spreads(load):
                    tile = self.tiles.temporary(f"{load.buffer.name}_broadcast", self._extents(), load.buffer.dtype)
                    room = self.tiles.temporary("broadcast_workspace", (*self._extents(), (const(2), False)), "uint8")
                    source = self._load(load)
                    found.append(Touched((*source, room), (tile,)))
                    spread[id(part)] = tile
        done = self._decompose(value, out, target.buffer, spread, found)
        if not done:
            return None
        if is_global and out >= 0:
            found.append(Touched((out,), ()))
        return found

    def _decompose(self, value: Expr, out: Tile, like: Buffer, spread: dict[int, Tile], found: list[Touched]) -> bool:
        """The instructions for ``out = value``; False if there are none."""

        def reads(part: Expr) -> tuple[Tile, ...]:
            if id(part) in spread:
                return (spread[id(part)],)
            return self._load(part.operand) if part.operand is not None else ()

        def emit(*parts: tuple[Tile, ...]) -> bool:
            found.append(Touched(tuple(tile for part in parts for tile in part), (out,) if out >= 0 else ()))
            return True

        if _is_cast(value):
            return emit(reads(value.args[0]))
        if value.kind == "load":
            return not (id(value) not in spread and self._differs(value, like)) and emit(reads(value))
        if self._is_unary(value):
            return emit(*(reads(part) for part in value.args))
        pair = _operands(value)
        if pair is None:
            return False
        left, right = pair
        simple = [part is not None and part.kind == "load" for part in pair]
        right_fixed = right is None or self.is_fixed(right)
        if left is None or (not simple[0] and not self._is_operation(left)):
            return False
        if right is not None and not right_fixed and not simple[1] and not self._is_operation(right):
            return False
        inputs: list[tuple[Tile, ...]] = []
        temporaries = [
            None if is_simple or part is None or (part is right and right_fixed) else self._temporary(like)
            for part, is_simple in zip(pair, simple, strict=True)
        ]
        for part, temporary in zip(pair, temporaries, strict=True):
            if part is None:
                continue
            if temporary is None:
                inputs.append(reads(part))
                continue
            if not self._decompose(part, temporary, like, spread, found):
                return False
            inputs.append((temporary,))
        return emit(*inputs)

    def _differs(self, value: Expr, like: Buffer) -> bool:
        """A copy between tiles of different widths is a loop over the elements."""
        load = value.operand
        assert load is not None
        shapes = (load.buffer.shape, like.shape)
        on_chip = load.buffer.memory is Memory.UB and like.memory is Memory.UB
        return on_chip and all(len(shape) >= 2 for shape in shapes) and shapes[0][-1] != shapes[1][-1]

    def _is_unary(self, value: Expr) -> bool:
        if value.kind != "call" or not value.args:
            return False
        if value.name in _UNARY:
            return value.args[0].kind == "load"
        if value.name == "max" and len(value.args) == 2:
            return any(
                one.kind == "load" and is_zero(other.node) for one, other in (value.args, tuple(reversed(value.args)))
            )
        return False

    def _is_operation(self, value: Expr) -> bool:
        return self._is_unary(value) or _operands(value) is not None

    def _load(self, load: Operand) -> tuple[Tile, ...]:
        inner = tuple(self.tiles.buffer(o.buffer) for o in load.loads if o.buffer.is_tile)
        return (*((self.tiles.buffer(load.buffer),) if load.buffer.is_tile else ()), *inner)

    def _extents(self) -> tuple[Halved, ...]:
        items = [item for item in (self.outer, self.inner) if item is not None]
        return tuple((item.extent, item in self.halved) for item in items)

    def _temporary(self, like: Buffer, *, both: bool = False) -> Tile:
        """A tile for a part of an expression: as large as what one instruction computes."""
        rows_only = self._rows and not both
        extents = self._extents()[-1:] if rows_only else self._extents()
        if len(like.shape) == 1:
            extents = (*extents, *self.turns)
        return self.tiles.temporary(f"{like.name}_tmp", extents, like.dtype)


def _is_cast(value: Expr) -> bool:
    return value.kind == "call" and value.name in _CASTS and bool(value.args) and value.args[0].kind == "load"


def _operands(value: Expr) -> tuple[Expr | None, Expr | None] | None:
    """Both operands of an operation that has a vector instruction; the right one of ``-x`` is the number -1: None."""
    if value.kind == "binary" and value.name in _BINARY:
        return value.args[0], value.args[1]
    if value.kind == "unary":
        return value.args[0], None
    if value.kind == "call" and value.name in _TWO and len(value.args) == 2:
        return value.args[0], value.args[1]
    return None
