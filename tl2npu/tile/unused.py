"""Tiles that nothing reads, what is computed for them, and names of integers that nothing mentions, go."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.tile.ir import For, If, Kernel, Let, Stmt, reads, statements, with_bodies, writes
from tl2npu.tile.names import names_of


def without_unused(kernel: Kernel) -> Kernel:
    """The kernel without statements that only write tiles which are never read, those tiles, and unused names."""
    own = {tile.name for tile in kernel.tiles}
    while True:
        used = {name for stmt in statements(kernel.body) for name in (*reads(stmt), *names_of(stmt))}

        def kept(body: tuple[Stmt, ...], used: set[str] = used) -> tuple[Stmt, ...]:
            found = (with_bodies(stmt, kept) for stmt in body if not _idle(stmt, own, used))
            return tuple(stmt for stmt in found if not _empty(stmt))

        body = kept(kernel.body)
        if body == kernel.body:
            break
        kernel = replace(kernel, body=body)
    used = {name for stmt in statements(kernel.body) for name in (*reads(stmt), *writes(stmt))}
    return replace(kernel, tiles=tuple(tile for tile in kernel.tiles if tile.name in used))


def _idle(stmt: Stmt, own: set[str], used: set[str]) -> bool:
    if isinstance(stmt, Let):
        return stmt.name not in used
    if isinstance(stmt, (For, If)):
        return False
    written = writes(stmt)
    return bool(written) and written <= own - used


def _empty(stmt: Stmt) -> bool:
    if isinstance(stmt, For):
        return not stmt.body
    return isinstance(stmt, If) and not stmt.then and not stmt.orelse
