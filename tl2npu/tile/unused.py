"""Tiles that nothing reads, and what is computed for them, go."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.tile.ir import For, If, Kernel, Let, Stmt, reads, statements, with_bodies, writes


def without_unused(kernel: Kernel) -> Kernel:
    """The kernel without statements that only write tiles which are never read, and without those tiles."""
    own = {tile.name for tile in kernel.tiles}
    while True:
        used = {name for stmt in statements(kernel.body) for name in reads(stmt)}

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
    if isinstance(stmt, (For, If, Let)):
        return False
    written = writes(stmt)
    return bool(written) and written <= own - used


def _empty(stmt: Stmt) -> bool:
    if isinstance(stmt, For):
        return not stmt.body
    return isinstance(stmt, If) and not stmt.then and not stmt.orelse
