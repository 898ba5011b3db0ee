"""Operands of products that are parts of a staged tile come from its tensor: cube cores take no parts of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tl2npu.tile.ir import AtomicAdd, For, If, Kernel, Matmul, Move, Region, Stmt, mapped, statements, writes


def with_whole_operands(kernel: Kernel) -> Kernel:
    """The kernel with parts of tiles that only hold a region of a tensor moved from there, where a product takes them.

    A part is left alone where the tile is written twice, or where a tensor may be written between both moves.
    """
    operands = {name for stmt in statements(kernel.body) if isinstance(stmt, Matmul) for name in (stmt.a, stmt.b)}
    tensors = {param.name for param in kernel.params}
    order = list(_placed(kernel.body, ()))
    writers: dict[str, list[int]] = {}
    for place, (stmt, _) in enumerate(order):
        for name in writes(stmt):
            writers.setdefault(name, []).append(place)
    stored = [place for place, (stmt, _) in enumerate(order) if _written(stmt, tensors)]
    changed: dict[int, Stmt] = {}
    for place, (stmt, around) in enumerate(order):
        if not isinstance(stmt, Move) or stmt.dst.buffer not in operands or stmt.src.buffer in tensors:
            continue
        made = writers.get(stmt.src.buffer, [])
        if len(made) != 1 or made[0] > place:
            continue
        first, outside = order[made[0]]
        if not isinstance(first, Move) or first.src.buffer not in tensors or outside != around[: len(outside)]:
            continue
        inner = around[len(outside) :]
        end = max([place, *(n for n, (_, chain) in enumerate(order) if inner and inner[0] in chain)])
        source = _inside(first, stmt.src, kernel)
        if source is not None and not any(made[0] < write <= end for write in stored):
            changed[id(stmt)] = replace(stmt, src=source)
    return replace(kernel, body=mapped(kernel.body, lambda stmt: changed.get(id(stmt), stmt))) if changed else kernel


def _placed(body: tuple[Stmt, ...], around: tuple[int, ...]) -> Iterator[tuple[Stmt, tuple[int, ...]]]:
    """Every statement with the loops and branches around it, as their identities."""
    for stmt in body:
        yield stmt, around
        if isinstance(stmt, For):
            yield from _placed(stmt.body, (*around, id(stmt)))
        elif isinstance(stmt, If):
            yield from _placed(stmt.then, (*around, id(stmt.then)))
            yield from _placed(stmt.orelse, (*around, id(stmt.orelse)))


def _written(stmt: Stmt, tensors: set[str]) -> bool:
    return isinstance(stmt, AtomicAdd) or bool(writes(stmt) & tensors)


def _inside(first: Move, part: Region, kernel: Kernel) -> Region | None:
    """The region of the tensor that a part of the tile is; None where the tile is not filled as a whole."""
    shape = kernel.buffers[part.buffer].shape
    whole = all(start.is_zero for start in first.dst.start) and first.dst.extent == shape
    if not whole or None in part.extent:
        return None
    pairs = iter(zip(part.start, part.extent, strict=True))
    start, extents = [], []
    for begin, extent in zip(first.src.start, first.src.extent, strict=True):
        more, size = next(pairs) if extent is not None else (None, None)
        start.append(begin if more is None else begin + more)
        extents.append(size)
    return Region(first.src.buffer, tuple(start), tuple(extents))
