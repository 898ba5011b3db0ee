"""Parts of tiles that lie in fractals, L0C and L1: which of them a copy reaches.

A tile is a column of blocks behind the other; a block is 16 elements wide in L0C, 32 bytes in L1, and as high as the
tile. The compiler counts where a part of L0C begins as if rows followed each other. For target pto, a copy takes a part
of constant size for a tile of its own, so its columns of blocks are as high as the part. (Read in src/op/ascend.cc,
AscendCopy::Lower, and src/target/codegen_ascend_pto.cc, GMCopyCall and GetSliceInfo.)
"""

from __future__ import annotations

from tl2npu.kernel.model import Operand, Scalar

FRACTAL = 16
"""Rows and columns of a fractal, the unit of the cube core."""


def begins_where_counted(source: Operand | Scalar | None) -> bool:
    """True unless ``source`` is a part of L0C that begins at another element than the compiler's address.

    The rows of a tile that is one fractal wide follow each other; the slabs in front of the last two axes do in any.
    """
    if not isinstance(source, Operand) or not source.dims:
        return True
    one_fractal_wide = source.buffer.shape[-1].constant == FRACTAL
    return all(dim.lo.is_zero for dim in (source.dims[-1:] if one_fractal_wide else source.dims[-2:]))


def is_lower(rows: int | None, columns: int | None, height: int | None, lanes: int = FRACTAL) -> bool:
    """True for a part of several columns of blocks with fewer rows of blocks than its tile, which has ``height`` rows.

    ``lanes``: how many elements wide a block is. None is a number that is not known.
    """
    if rows is None or height is None or (columns is not None and columns <= lanes):
        return False
    return -(-rows // FRACTAL) < -(-height // FRACTAL)


def across_blocks(part: Operand, lanes: int) -> bool:
    """True for a part whose first column stands in the middle of a block, and whose last one in another block."""
    if not part.dims:
        return False
    start, columns = part.dims[-1].lo.constant, part.dims[-1].extent
    if start is None or not start % lanes:
        return False
    return columns is None or columns.constant is None or start % lanes + columns.constant > lanes
