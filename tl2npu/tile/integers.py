"""Every integer of a statement changed: indices, starts and extents of regions, counts of loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tl2npu.kernel.symbolic import Sym
from tl2npu.tile.expr import Index, with_integers
from tl2npu.tile.ir import (
    AtomicAdd,
    Buffer,
    For,
    Kernel,
    Launch,
    Let,
    Move,
    Region,
    Stmt,
    mapped,
    with_bodies,
    with_values,
)

Change = Callable[[Sym], Sym]


def _in_stmt(stmt: Stmt, change: Change) -> Stmt:
    match stmt:
        case Move():
            return replace(stmt, src=_region(stmt.src, change), dst=_region(stmt.dst, change))
        case AtomicAdd():
            return replace(stmt, dst=_region(stmt.dst, change))
        case For():
            return replace(stmt, count=change(stmt.count))
        case _:
            return with_values(stmt, lambda value: with_integers(value, change))


def in_body(body: tuple[Stmt, ...], change: Change) -> tuple[Stmt, ...]:
    """The statements with every integer in them changed, those of the statements in them too."""
    return mapped(body, lambda stmt: _in_stmt(stmt, change))


def in_kernel(kernel: Kernel, change: Change) -> Kernel:
    """The kernel with every integer in it changed, those of shapes and of the grid too."""

    def buffers(found: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        return tuple(replace(buffer, shape=tuple(change(extent) for extent in buffer.shape)) for buffer in found)

    grid = tuple(change(extent) for extent in kernel.launch.grid)
    return replace(
        kernel,
        params=buffers(kernel.params),
        tiles=buffers(kernel.tiles),
        launch=Launch(grid, kernel.launch.names),
        body=in_body(kernel.body, change),
    )


def _region(region: Region, change: Change) -> Region:
    extent = tuple(None if part is None else change(part) for part in region.extent)
    return Region(region.buffer, tuple(change(part) for part in region.start), extent)


def without_lets(body: tuple[Stmt, ...], goes: Callable[[Sym], bool]) -> tuple[Stmt, ...]:
    """The statements with named integers, those that go, written where they are used."""
    for number, stmt in enumerate(body):
        if isinstance(stmt, Let) and isinstance(stmt.value, Index) and goes(stmt.value.value):
            value = {stmt.name: stmt.value.value}
            rest = in_body(body[number + 1 :], lambda part, value=value: part.substitute(value))  # type: ignore[misc]
            return (*body[:number], *without_lets(rest, goes))
        inner = with_bodies(stmt, lambda part: without_lets(part, goes))
        if inner != stmt:
            body = (*body[:number], inner, *body[number + 1 :])
    return body
