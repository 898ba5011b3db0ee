"""How many threads a block of a GPU has, and how products are spread over its warps.

A warp computes at least 16 rows of a product; NPU kernels know nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping

from tl2npu.tile.ir import Kernel, Matmul, reads, statements, writes

_LANES, _ROWS, _MOST = 32, 16, 128


def threads(kernel: Kernel, numbers: Mapping[str, int]) -> int:
    """As many threads as the shortest product has rows for. ``numbers``: sizes with a known value."""
    buffers = kernel.buffers
    rows = [buffers[stmt.c].shape[0].substitute(numbers).constant for stmt in _products(kernel)]
    known = [number for number in rows if number is not None]
    return min([_MOST, *(max(1, number // _ROWS) * _LANES for number in known)])


def chained(kernel: Kernel) -> bool:
    """True where an operand of a product comes from the result of another: both need the same warps for a row."""
    made = {stmt.c for stmt in _products(kernel)}
    steps = [(reads(stmt), writes(stmt)) for stmt in statements(kernel.body) if not isinstance(stmt, Matmul)]
    while True:
        more = {name for read, written in steps if read & made for name in written} - made
        if not more:
            return any({stmt.a, stmt.b} & made for stmt in _products(kernel))
        made |= more


def _products(kernel: Kernel) -> list[Matmul]:
    return [stmt for stmt in statements(kernel.body) if isinstance(stmt, Matmul)]
