"""``T.use_swizzle`` on Ascend: the block index in another order, for the L2 cache.

Blocks are taken in stripes of ``off`` rows (``dir`` 0) or columns (1) of the grid of tiles; in a stripe they go across
it first and along it second, and every other stripe is gone through backwards. The last stripe may be narrower.
Source: tl_templates/ascend/common.h:thread_block_swizzle, catlass ``GemmIdentityBlockSwizzle``.
"""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.ir import expr


def npu_swizzle(
    cid: Any, m: Any, n: Any, k: Any, block_m: int, block_n: int, off: int = 1, dir: int = 0, in_loop: bool = False
) -> Any:
    """The tile that block ``cid`` gets, counted row by row; an int32 expression.

    Raises TraceError where the tiles do not divide ``m`` and ``n``, or ``off`` and ``dir`` are none that exist.
    """
    where = Builder.current().here()
    sizes = (m, n, block_m, block_n)
    if not all(isinstance(size, int) for size in sizes):
        raise TraceError("T.use_swizzle needs sizes that are known when the kernel is compiled", where)
    if m % block_m or n % block_n:
        raise TraceError(f"T.use_swizzle: {m} and {n} have to be multiples of {block_m} and {block_n}", where)
    if off < 1 or dir not in (0, 1):
        raise TraceError(f"T.use_swizzle: off={off}, dir={dir}; off is at least 1, dir is 0 or 1", where)
    rows, columns = m // block_m, n // block_n
    across, along = (rows, columns) if dir == 0 else (columns, rows)
    index = expr.binary("%", cid, rows * columns)
    stripe = expr.binary("//", index, off * along)
    inside = expr.binary("%", index, off * along)
    width = expr.call("min", off, expr.binary("-", across, expr.binary("*", stripe, off)))
    first = expr.binary("+", expr.binary("*", stripe, off), expr.binary("%", inside, width))
    second = expr.binary("//", inside, width)
    backwards = expr.binary("-", along - 1, second)
    second = expr.call("if_then_else", expr.binary("==", expr.binary("%", stripe, 2), 1), backwards, second)
    row, column = (first, second) if dir == 0 else (second, first)
    return expr.binary("+", expr.binary("*", row, columns), column)
