"""Kernels whose blocks take several tiles in turn, as kernels with a block for each tile.

``for tile in range(program_id, tiles, num_programs)`` keeps the cores of a machine busy. The compiler for the NPU
does that itself, and it overlaps and synchronises the work on one tile only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tl2npu.kernel.symbolic import Opaque, Sym, var
from tl2npu.tile.expr import Index
from tl2npu.tile.integers import in_body, without_lets
from tl2npu.tile.ir import For, If, Kernel, Launch, Let, Map, Matmul, Move, Reduce, Stmt, reads, statements, writes
from tl2npu.tile.names import names_in
from tl2npu.tile.unused import without_unused


def with_block_per_tile(kernel: Kernel) -> Kernel:
    """The kernel with a block for each turn of its outermost loop, where the turns are spread over the blocks so.

    It stays as it is where a turn needs something of the turn before.
    """
    if len(kernel.launch.grid) != 1 or not kernel.body or not isinstance(kernel.body[-1], For):
        return kernel
    (blocks,), (block,) = kernel.launch.grid, kernel.launch.names
    *front, loop = without_lets(kernel.body, lambda value: value == blocks)
    assert isinstance(loop, For)
    tiles = _tiles(loop.count, block, blocks, front)
    if tiles is None or blocks.constant == 1 or _carries(kernel, loop.body):
        return kernel
    name = loop.var.removesuffix("_step")
    taken = {*kernel.buffers, *(stmt.name for stmt in statements(kernel.body) if isinstance(stmt, Let))}
    taken |= {stmt.var for stmt in statements(loop.body) if isinstance(stmt, For)} | tiles.names
    name = block if name in taken else name
    mark = "~tile"
    place = {block: var(mark) - blocks * var(loop.var)}
    body = in_body(loop.body, lambda value: value.substitute(place))
    if names_in((*front, *body)) & {loop.var, block} or not _by_tile(kernel, body, mark):
        return kernel
    body = in_body(body, lambda value: value.substitute({mark: var(name)}))
    return without_unused(replace(kernel, launch=Launch((tiles,), (name,)), body=(*front, *body)))


def _tiles(count: Sym, block: str, blocks: Sym, front: Sequence[Stmt]) -> Sym | None:
    """The number of tiles of which each block does one in ``blocks``; None for another number of turns."""
    known = {stmt.name: stmt.value.value for stmt in front if isinstance(stmt, Let) and isinstance(stmt.value, Index)}
    atom = count.atom
    if not isinstance(atom, Opaque) or atom.head != "cdiv" or atom.args[1] != blocks:
        return None
    tiles = atom.args[0] + var(block)
    for _ in range(len(known)):
        tiles = tiles.substitute(known)
    loaded = {stmt.name for stmt in front if isinstance(stmt, Let)}
    return None if tiles.names & ({block} | loaded) else tiles


def _by_tile(kernel: Kernel, body: Sequence[Stmt], tile: str) -> bool:
    """True if the tile chooses where a turn writes, and no turn reads what another may write."""
    params = {buffer.name for buffer in kernel.params}
    written = {name for stmt in statements(tuple(body)) for name in writes(stmt)} & params
    read = {name for stmt in statements(tuple(body)) for name in reads(stmt)} & params
    chosen = {tile}
    for stmt in statements(tuple(body)):
        if isinstance(stmt, Let) and isinstance(stmt.value, Index) and stmt.value.value.names & chosen:
            chosen.add(stmt.name)
    for stmt in statements(tuple(body)):
        if isinstance(stmt, Move) and stmt.dst.buffer in params and not any(s.names & chosen for s in stmt.dst.start):
            return False
    return not written & read


def _carries(kernel: Kernel, body: Sequence[Stmt]) -> bool:
    """True if a turn reads a tile that the turn before has written."""
    needed: set[str] = set()
    _flow(kernel, body, set(), needed)
    return bool(needed & {name for stmt in statements(tuple(body)) for name in writes(stmt)})


def _flow(kernel: Kernel, body: Sequence[Stmt], known: set[str], needed: set[str]) -> None:
    """Note the tiles that are read before they are written as a whole."""
    tiles = {tile.name: tile.shape for tile in kernel.tiles}
    for stmt in body:
        needed |= {name for name in reads(stmt) if name in tiles} - known
        match stmt:
            case Map() | Reduce():
                known.add(stmt.dst)
            case Matmul():
                known.add(stmt.c)
            case Move() if stmt.dst.buffer in tiles:
                if stmt.dst.extent == tiles[stmt.dst.buffer] and all(start.is_zero for start in stmt.dst.start):
                    known.add(stmt.dst.buffer)
                else:
                    needed |= {stmt.dst.buffer} - known
            case For():
                _flow(kernel, stmt.body, set(known), needed)
            case If():
                one, other = set(known), set(known)
                _flow(kernel, stmt.then, one, needed)
                _flow(kernel, stmt.orelse, other, needed)
                known |= one & other
            case _:
                pass
