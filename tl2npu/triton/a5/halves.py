"""Halves of a tile, one for each vector core, as the whole tile.

Both vector cores run the same statements, each on its half: row ``i`` of a half is row ``i + sub_vec_id * H`` of the
whole tile, ``H`` being the rows of a half. A statement means the same on whole tiles if putting ``i - sub_vec_id * H``
for ``i`` leaves no ``sub_vec_id`` in it: then every row is computed from its own number only. Reductions along the
rows, values that the two cores do not share by rows, and branches on ``sub_vec_id`` are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tl2npu.kernel.symbolic import Sym, var
from tl2npu.tile.expr import Expr, Index, Load, axis, axis_of, integers, loads, rebuilt
from tl2npu.tile.integers import without_lets
from tl2npu.tile.ir import (
    AtomicAdd,
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Map,
    Matmul,
    Move,
    Reduce,
    Region,
    Stmt,
    mapped,
    statements,
    with_bodies,
)
from tl2npu.tile.names import names_in
from tl2npu.triton.refused import Refused


def whole(kernel: Kernel, half: str) -> Kernel:
    """The kernel without ``half``, the name of the vector core's number. Raises ``Refused`` (TL567)."""
    kernel = replace(kernel, body=without_lets(kernel.body, lambda value: half in value.names))
    if half not in names_in(kernel.body):
        return kernel
    return _Whole(kernel, half).done()


def _names(stmt: Stmt) -> frozenset[str]:
    """The names in the integers of a statement itself."""
    return names_in((with_bodies(stmt, lambda _: ()),))


class _Whole:
    """``split``: tile -> the axis along which each vector core has a half of it."""

    def __init__(self, kernel: Kernel, half: str) -> None:
        self.kernel, self.half = kernel, half
        self.buffers = kernel.buffers
        self.tiles = {tile.name for tile in kernel.tiles}
        self.split: dict[str, int] = {}

    def done(self) -> Kernel:
        before = -1
        while len(self.split) != before:
            before = len(self.split)
            for stmt in statements(self.kernel.body):
                self.infer(stmt)
        written = {region.buffer for stmt in statements(self.kernel.body) for region in self.stored(stmt)}
        for stmt in statements(self.kernel.body):
            for name in written - self.tiles:
                if isinstance(stmt, (Move, Map, Let)) and self.loaded(stmt, name):
                    raise self.refuse(stmt, f"`{name}` is written by both vector cores and read again")
        body = mapped(self.kernel.body, self.stmt)
        tiles = tuple(replace(tile, shape=self.shape(tile)) for tile in self.kernel.tiles)
        return replace(self.kernel, tiles=tiles, body=body)

    def stored(self, stmt: Stmt) -> Iterator[Region]:
        if isinstance(stmt, (Move, AtomicAdd)):
            yield stmt.dst

    def loaded(self, stmt: Move | Map | Let, name: str) -> bool:
        if isinstance(stmt, Move):
            return stmt.src.buffer == name
        return any(item.buffer == name for item in loads(stmt.value))

    def refuse(self, stmt: Stmt, message: str) -> Refused:
        return Refused("TL567", stmt.origin.line, message)

    def shape(self, tile: Buffer) -> tuple[Sym, ...]:
        """The shape of the whole tile."""
        place = self.split.get(tile.name)
        return tuple(extent * 2 if number == place else extent for number, extent in enumerate(tile.shape))

    # which tiles are halves ---------------------------------------------------------------------------------------

    def infer(self, stmt: Stmt) -> None:
        """Note the halves that a statement shows."""
        match stmt:
            case Map():
                for place in self.rows_of(stmt.value):
                    self.note(stmt.dst, place, stmt)
            case Reduce() if stmt.src in self.split:
                place = self.split[stmt.src]
                if place == stmt.axis:
                    raise self.refuse(stmt, f"`{stmt.src}` is reduced along the rows that the vector cores share")
                self.note(stmt.dst, place - (place > stmt.axis), stmt)
            case Move():
                self.infer_move(stmt)
            case _:
                pass

    def note(self, name: str, place: int, stmt: Stmt) -> None:
        if self.split.setdefault(name, place) != place:
            raise self.refuse(stmt, f"`{name}` is shared along both axes")

    def rows_of(self, value: Expr) -> Iterator[int]:
        """The axes along which a value belongs to the vector core."""
        for item in loads(value):
            place = self.split.get(item.buffer)
            number = axis_of(str(item.index[place])) if place is not None and item.index[place].atom else None
            if number is not None:
                yield number
        for part in integers(value):
            if self.half in part.names:
                yield from (n for name in part.names if (n := axis_of(name)) is not None and self.follows(part, n))

    def follows(self, part: Sym, number: int) -> bool:
        """True if the integer grows with the axis as it does with the vector core."""
        step = part.substitute({f"@{number}": 1}) - part.substitute({f"@{number}": 0})
        core = part.substitute({self.half: 1}) - part.substitute({self.half: 0})
        return not step.is_zero and (core // step) * step == core

    def infer_move(self, stmt: Move) -> None:
        for one, other in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
            if other.buffer not in self.tiles:
                continue
            for start, place in zip(one.start, self.places(one), strict=True):
                if self.half in start.names and place is not None:
                    self.note(other.buffer, self.axis_at(other, place), stmt)
            mine = self.split.get(one.buffer)
            if mine is not None and not any(self.half in start.names for start in other.start):
                place = self.places(one)[mine]
                if place is not None:
                    self.note(other.buffer, self.axis_at(other, place), stmt)

    def places(self, region: Region) -> list[int | None]:
        """The number of each axis among those that have an extent."""
        found: list[int | None] = []
        for extent in region.extent:
            found.append(None if extent is None else sum(place is not None for place in found))
        return found

    def axis_at(self, region: Region, place: int) -> int:
        return self.places(region).index(place)

    # the whole ----------------------------------------------------------------------------------------------------

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Map():
                return replace(stmt, value=self.value(stmt))
            case Move():
                return self.move(stmt)
            case Matmul():
                for name in (stmt.a, stmt.b, stmt.c):
                    if name in self.split:
                        raise self.refuse(stmt, f"a product of `{name}`, of which each vector core has a half")
            case Reduce():
                if (stmt.dst in self.split) != (stmt.src in self.split):
                    raise self.refuse(stmt, f"`{stmt.dst}` is a half in one place and whole in another")
            case AtomicAdd():
                raise self.refuse(stmt, "both vector cores add to a tensor")
            case For() | If() | Let():
                if self.half in _names(stmt) or any(item.buffer in self.split for item in self.scalars(stmt)):
                    raise self.refuse(stmt, "the two vector cores do different work here")
        return stmt

    def scalars(self, stmt: For | If | Let) -> Iterator[Load]:
        if not isinstance(stmt, For):
            yield from loads(stmt.condition if isinstance(stmt, If) else stmt.value)

    def value(self, stmt: Map) -> Expr:
        """The value of each element of the whole tile."""
        place = self.split.get(stmt.dst)
        rows = {} if place is None else {f"@{place}": self.moved(stmt.dst, place)}

        def change(item: Expr) -> Expr | None:
            if isinstance(item, Index):
                return replace(item, value=self.free(item.value.substitute(rows), stmt))
            if not isinstance(item, Load):
                return None
            split = self.split.get(item.buffer)
            if split is not None and (place is None or item.index[split] != axis(place)):
                raise self.refuse(stmt, f"a row of `{item.buffer}` is used for another row of `{stmt.dst}`")
            index = tuple(
                part if number == split else self.free(part.substitute(rows), stmt)
                for number, part in enumerate(item.index)
            )
            return replace(item, index=index)

        return rebuilt(stmt.value, change)

    def moved(self, name: str, place: int) -> Sym:
        """The row of a half for a row of the whole."""
        return axis(place) - var(self.half) * self.buffers[name].shape[place]

    def free(self, value: Sym, stmt: Stmt) -> Sym:
        """An integer in which nothing depends on the vector core any more."""
        if self.half in value.names:
            raise self.refuse(stmt, "the two vector cores compute different values from one row number")
        return value

    def move(self, stmt: Move) -> Move:
        """A copy of both halves at once."""
        sides = [self.side(stmt, stmt.src, stmt.dst), self.side(stmt, stmt.dst, stmt.src)]
        return replace(stmt, src=sides[0], dst=sides[1])

    def side(self, stmt: Move, region: Region, other: Region) -> Region:
        """One side of a copy: a half becomes the whole, a part that begins at the core's row twice as long."""
        mine, theirs = (self.split.get(part.buffer) for part in (region, other))
        places = self.places(region)
        target = None if theirs is None else self.places(other)[theirs]
        start, extent = list(region.start), list(region.extent)
        if mine is not None:
            target = places[mine]
        for number, place in enumerate(places):
            moves = self.half in start[number].names
            if place is None or place != target:
                if moves:
                    raise self.refuse(stmt, f"each vector core copies another part of `{region.buffer}`")
                continue
            length = extent[number]
            assert length is not None
            first = start[number].substitute({self.half: 0})
            if number == mine:
                if moves or not first.is_zero or length != self.buffers[region.buffer].shape[number]:
                    raise self.refuse(stmt, f"a part of `{region.buffer}` is copied, of which each core has a half")
            elif start[number] != first + var(self.half) * length:
                raise self.refuse(stmt, f"the two vector cores do not copy neighbouring parts of `{region.buffer}`")
            start[number], extent[number] = first, length * 2
        if target is None and any(self.half in part.names for part in region.start):
            raise self.refuse(stmt, f"each vector core copies another part of `{region.buffer}`")
        return Region(region.buffer, tuple(start), tuple(extent))
