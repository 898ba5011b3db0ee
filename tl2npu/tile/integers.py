"""Every integer of a statement changed: indices, starts and extents of regions, counts of loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tl2npu.kernel.symbolic import Sym
from tl2npu.tile.expr import with_integers
from tl2npu.tile.ir import AtomicAdd, Buffer, For, If, Kernel, Launch, Let, Map, Move, Region, Stmt

Change = Callable[[Sym], Sym]


def in_stmt(stmt: Stmt, change: Change) -> Stmt:
    """The statement with every integer in it changed, those of the statements in it too."""
    match stmt:
        case Move():
            return replace(stmt, src=_region(stmt.src, change), dst=_region(stmt.dst, change))
        case AtomicAdd():
            return replace(stmt, dst=_region(stmt.dst, change))
        case Map() | Let():
            return replace(stmt, value=with_integers(stmt.value, change))
        case For():
            return replace(stmt, count=change(stmt.count), body=in_body(stmt.body, change))
        case If():
            then, orelse = in_body(stmt.then, change), in_body(stmt.orelse, change)
            return replace(stmt, condition=with_integers(stmt.condition, change), then=then, orelse=orelse)
    return stmt


def in_body(body: tuple[Stmt, ...], change: Change) -> tuple[Stmt, ...]:
    """The statements with every integer in them changed."""
    return tuple(in_stmt(stmt, change) for stmt in body)


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
