"""What the compiler makes of a copy between two UB tiles (``src/op/ascend.cc:512-532``).

``copy_ub_to_ub`` (``src/tl_templates/ascend/common.h:282-311``) gets rows, columns and the row length of both sides.
Where both take whole rows it moves one flat run; else it moves the rows of the *source*, each with the columns of the
source, and goes on by the row length on both sides. A vector is one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.model import Copy, Operand
from tl2npu.kernel.symbolic import Sym, const


@dataclass(frozen=True)
class TileSide:
    """One side: what is moved, and how long the rows of its buffer are."""

    rows: Sym
    columns: Sym
    stride: Sym


def sides(copy: Copy) -> tuple[TileSide, TileSide] | None:
    """Source and destination; None where the extents cannot be told."""
    left, right = extents_of(copy.src), extents_of(copy.dst)
    if left is None and right is None:
        return None
    src = left if left is not None else aligned(right or (), copy.src)
    dst = right if right is not None else aligned(left or (), copy.dst)
    if not src or not dst or not copy.src.buffer.shape or not copy.dst.buffer.shape:
        return None
    return _side(src, copy.src), _side(dst, copy.dst)


def aligned(extents: tuple[Sym, ...], operand: Operand) -> tuple[Sym, ...]:
    """The extents of a start index: those of the other side, on the trailing axes."""
    rank = len(operand.buffer.shape)
    return ((const(1),) * rank + extents)[-rank:]


def _side(extents: tuple[Sym, ...], operand: Operand) -> TileSide:
    rows = extents[-2] if len(extents) > 1 else const(1)
    return TileSide(rows, extents[-1], operand.buffer.shape[-1])
