"""Parts of tiles in L1 and L0C: where the generated code looks for them, and where they are.

A tile of R x C elements there is a column of blocks behind the other, each of R rows (rounded up to 16) of ``lanes``
elements: 16 in L0C (``MakeLayoutL0C``), 32 bytes in L1 (``zN``, tilelang/intrinsics/ascend_layout.py:make_zn_layout).
So element (i, j) is number ``j // lanes * R * lanes + i * lanes + j % lanes``. A copy is given an address for the
part's first element and walks on from there as in a tile of ``rows`` rows (src/op/ascend.cc, AscendCopy::Lower):

- The address in L0C is counted as in a row-major tile; in L1 it is right (``layout_map``), unless a vectorised
  ``T.Parallel`` has made the compiler drop the layouts (R-L1PART, E81).
- For target ascendc, ``rows`` are the tile's (``copy_l0c_to_gm<.., srcM, srcN>``, ``copy_gm_to_l1<.., dstM, dstN>``);
  in an atomic addition from L0C the part's, if they are a constant (AscendAtomicAdd::Lower).
- For target pto they are as many rows of the tile as the part has elements, if that is a constant
  (codegen_ascend_pto.cc:GetSliceInfo, GMCopyCall).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.stmt import Op, Stmt
from tl2npu.simulator.ir.stmt import walk as statements

ROWS = 16
"""Rows of a fractal."""


def column_block(memory: str, dtype: str) -> int:
    """Elements that lie side by side in a row of a fractal."""
    return ROWS if memory == "l0c" else 256 // dtypes.bits(dtype)


@dataclass(frozen=True)
class Walk:
    """How an instruction walks through a tile: ``rows`` of the tile that it takes it for, the address ``by_rows`` as in
    a row-major tile or by the layout."""

    rows: int
    by_rows: bool

    def finds(self, shape: Sequence[int], lanes: int, starts: Sequence[int], extents: Sequence[int]) -> bool:
        """True if the instruction takes the elements that the region names."""
        height, row, column = _up(shape[-2]), starts[-2], starts[-1]
        meant = column // lanes * height * lanes + row * lanes + column % lanes
        walked = row * shape[-1] + column if self.by_rows else meant
        one_block = column % lanes + extents[-1] <= lanes
        return walked == meant and (one_block or (column % lanes == 0 and _up(self.rows) == height))

    def check(self, side: Any, extents: Sequence[int]) -> None:
        """Raises SimulatorError where the instruction takes other elements; ``side`` is a ``machine.Operand``."""
        shape, lanes = side.array.shape, column_block(side.memory, side.dtype)
        if math.prod(extents) and not self.finds(shape, lanes, side.starts, extents):
            part = ", ".join(f"{s}:{s + e}" for s, e in zip(side.starts, extents, strict=True))
            where = {"l0c": "L0C", "l1": "L1"}[side.memory]
            text = f"{side.name}[{part}] in {where}: the compiler computes the part's offset for another layout than "
            side.fail(text + f"the tile's, blocks of {ROWS} x {lanes} elements")


def annotate(body: list[Stmt], pto: bool, vectorised: bool, own: Sequence[Buffer]) -> None:
    """Give copies and atomic additions of parts of such tiles the argument ``walk``: a ``Walk`` for ``src`` or ``dst``.

    ``vectorised``: the kernel has such a ``T.Parallel``; ``own``: workspaces of the compiler, which are written as it
    reads them. ``body`` is changed in place.
    """
    for stmt in statements(body):
        if not isinstance(stmt, Op) or stmt.name not in ("copy", "tile.atomic_add") or stmt.args.get("transpose"):
            continue
        for name, other in (("src", "dst"), ("dst", "src")):
            side, peer = stmt.args.get(name), stmt.args.get(other)
            if isinstance(side, (Region, Load)) and isinstance(peer, (Region, Load)) and peer.buffer not in own:
                walk = _walk(stmt, side, peer, pto, vectorised)
                if walk is not None:
                    stmt.args = {**stmt.args, "walk": (name, walk)}


def _walk(stmt: Op, side: Region | Load, peer: Region | Load, pto: bool, vectorised: bool) -> Walk | None:
    buffer = side.buffer
    if buffer.memory not in ("l0c", "l1") or buffer.ndim < 2 or not all(isinstance(n, int) for n in buffer.shape):
        return None
    rows, columns = (int(n) for n in buffer.shape[-2:])
    extents = side.extents if isinstance(side, Region) else peer.extents if isinstance(peer, Region) else ()
    starts = side.starts if isinstance(side, Region) else side.indices
    whole = all(
        isinstance(n, int) and n == m
        for n, m in zip((*starts[-2:], *extents[-2:]), (0, 0, rows, columns), strict=False)
    )
    if len(extents) < 2 or whole:
        return None
    if pto:
        count = math.prod(e for e in extents if isinstance(e, int))
        rows = max(count // columns, 1) if all(isinstance(e, int) for e in extents) else rows
    elif stmt.name != "copy" and isinstance(extents[-2], int):
        rows = min(rows, extents[-2])
    return Walk(rows, buffer.memory == "l0c" or vectorised)


def _up(rows: int) -> int:
    return -(-rows // ROWS) * ROWS
