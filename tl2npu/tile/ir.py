"""The tile IR: statements, buffers, and the kernel that is a value. Nothing here is changed in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tl2npu.kernel.symbolic import Sym
from tl2npu.tile.expr import Expr, loads

Scope = Literal["global", "shared", "fragment"]
ReduceKind = Literal["sum", "max", "min"]


@dataclass(frozen=True)
class Origin:
    """Where a statement comes from: a line of the input. Rules never look at it."""

    line: int


@dataclass(frozen=True)
class Buffer:
    """A tensor in global memory, or a tile; a shape of no axis is a single element."""

    name: str
    shape: tuple[Sym, ...]
    dtype: str
    scope: Scope


@dataclass(frozen=True)
class Region:
    """A part of a buffer: where it starts and how far it goes along each axis; an extent of None is a point."""

    buffer: str
    start: tuple[Sym, ...]
    extent: tuple[Sym | None, ...]


@dataclass(frozen=True)
class Move:
    """A copy between regions of equal shape, points aside; it converts element types.

    A region of a global tensor that leaves it reads zeros there and writes nothing. ``inside``: it never leaves it.
    """

    src: Region
    dst: Region
    origin: Origin
    inside: bool = False


@dataclass(frozen=True)
class Map:
    """``dst[place] = value`` for every place in ``dst``; the value is computed for all places before any is written."""

    dst: str
    value: Expr
    origin: Origin


@dataclass(frozen=True)
class Reduce:
    """``dst`` becomes the reduction of ``src`` along one axis."""

    kind: ReduceKind
    src: str
    dst: str
    axis: int
    origin: Origin


@dataclass(frozen=True)
class Matmul:
    """``c += a @ b``, or ``c = a @ b`` where ``clear``; ``transpose_a``: ``a`` is stored as ``[k, m]``."""

    a: str
    b: str
    c: str
    clear: bool
    transpose_a: bool
    transpose_b: bool
    origin: Origin


@dataclass(frozen=True)
class AtomicAdd:
    """The elements of a tile are added to a region of a global tensor, each at once."""

    src: str
    dst: Region
    origin: Origin


@dataclass(frozen=True)
class For:
    """``body`` for ``var`` from 0 to ``count`` - 1; ``stages`` > 0: loads of later turns may run ahead."""

    var: str
    count: Sym
    body: tuple[Stmt, ...]
    stages: int
    origin: Origin


@dataclass(frozen=True)
class If:
    """One of two bodies, by a condition on scalars."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    origin: Origin


@dataclass(frozen=True)
class Let:
    """A name for a scalar integer, from here on."""

    name: str
    value: Expr
    origin: Origin


Stmt = Move | Map | Reduce | Matmul | AtomicAdd | For | If | Let


@dataclass(frozen=True)
class Launch:
    """The grid, first axis fastest, with a name for the place of a block along each axis."""

    grid: tuple[Sym, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel as a value: global tensors, launch, tiles, and what is done with them.

    ``sizes``: what a launch decides and the factory takes, in the order of its parameters. ``scalars``: numbers in
    float32 that the kernel itself takes, behind its tensors.
    """

    name: str
    sizes: tuple[str, ...]
    params: tuple[Buffer, ...]
    launch: Launch
    tiles: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    scalars: tuple[str, ...] = ()

    @property
    def buffers(self) -> dict[str, Buffer]:
        """All buffers by name."""
        return {buffer.name: buffer for buffer in (*self.params, *self.tiles)}


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, those inside of loops and branches too, in the order of the text."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For):
            yield from statements(stmt.body)
        elif isinstance(stmt, If):
            yield from statements(stmt.then)
            yield from statements(stmt.orelse)


def values(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself."""
    match stmt:
        case Map() | Let():
            return (stmt.value,)
        case If():
            return (stmt.condition,)
        case _:
            return ()


def reads(stmt: Stmt) -> frozenset[str]:
    """The buffers that a statement itself reads, not those of the statements in it."""
    match stmt:
        case Move():
            return frozenset({stmt.src.buffer})
        case Map() | Let() | If():
            return frozenset(item.buffer for value in values(stmt) for item in loads(value))
        case Reduce() | AtomicAdd():
            return frozenset({stmt.src})
        case Matmul():
            return frozenset({stmt.a, stmt.b} | (set() if stmt.clear else {stmt.c}))
        case For():
            return frozenset()


def writes(stmt: Stmt) -> frozenset[str]:
    """The buffers that a statement itself writes."""
    match stmt:
        case Move() | AtomicAdd():
            return frozenset({stmt.dst.buffer})
        case Map() | Reduce():
            return frozenset({stmt.dst})
        case Matmul():
            return frozenset({stmt.c})
        case For() | If() | Let():
            return frozenset()


def with_values(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """The statement with its own expressions changed."""
    match stmt:
        case Map() | Let():
            return replace(stmt, value=change(stmt.value))
        case If():
            return replace(stmt, condition=change(stmt.condition))
        case _:
            return stmt


def mapped(body: tuple[Stmt, ...], change: Callable[[Stmt], Stmt]) -> tuple[Stmt, ...]:
    """Every statement changed, and then those inside of what it became."""
    return tuple(with_bodies(change(stmt), lambda inner: mapped(inner, change)) for stmt in body)


def with_bodies(stmt: Stmt, change: BodyChange) -> Stmt:
    """The statement with the bodies in it changed."""
    if isinstance(stmt, For):
        return replace(stmt, body=change(stmt.body))
    if isinstance(stmt, If):
        return replace(stmt, then=change(stmt.then), orelse=change(stmt.orelse))
    return stmt


BodyChange = Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]
