"""Single elements that are loaded and only used in element-wise code are scalars, which need no tile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tl2npu.tile.expr import Expr, Load, Opaque, rebuilt
from tl2npu.tile.ir import Kernel, Let, Map, Move, Stmt, reads, statements, with_bodies, writes

_DTYPE = "float32"
"""The compiler cannot use other scalars of global memory in operators of this type."""


def with_scalars(kernel: Kernel) -> Kernel:
    """The kernel with names for loaded elements in the place of tiles of no axis, where nothing else needs the tile."""
    singles = {tile.name for tile in kernel.tiles if not tile.shape and tile.dtype == _DTYPE}
    alone = singles - {
        name
        for stmt in statements(kernel.body)
        for name in (*(writes(stmt) if not isinstance(stmt, Move) else ()), *_whole(stmt))
    }
    writing = Counter(name for stmt in statements(kernel.body) for name in writes(stmt))
    alone -= {name for name, count in writing.items() if count > 1}
    found: set[str] = set()

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        new: list[Stmt] = []
        for number, stmt in enumerate(stmts):
            name = stmt.dst.buffer if isinstance(stmt, Move) else ""
            behind = sum(_uses(item, name) for item in statements(stmts[number + 1 :])) if name in alone else 0
            every = sum(_uses(item, name) for item in statements(kernel.body)) if name in alone else 0
            if behind == every - 1 and isinstance(stmt, Move) and stmt.inside and stmt.src.buffer not in writing:
                found.add(name)
                new.append(Let(name, Load(stmt.src.buffer, stmt.src.start, _DTYPE), stmt.origin))
            else:
                new.append(with_bodies(stmt, body))
        return tuple(new)

    new = body(kernel.body)

    def named(item: Expr) -> Expr | None:
        return Opaque(item.buffer, _DTYPE) if isinstance(item, Load) and item.buffer in found else None

    def renamed(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        changed = (
            replace(stmt, value=rebuilt(stmt.value, named)) if isinstance(stmt, (Map, Let)) else stmt for stmt in stmts
        )
        return tuple(with_bodies(stmt, renamed) for stmt in changed)

    return replace(kernel, body=renamed(new), tiles=tuple(tile for tile in kernel.tiles if tile.name not in found))


def _uses(stmt: Stmt, name: str) -> int:
    return (name in reads(stmt)) + (name in writes(stmt))


def _whole(stmt: Stmt) -> frozenset[str]:
    """The tiles that a statement needs as tiles."""
    return frozenset() if isinstance(stmt, (Map, Let)) else reads(stmt)
