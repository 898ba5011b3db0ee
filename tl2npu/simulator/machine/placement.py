"""Buffers at addresses given by hand (``T.annotate_address``) that share memory.

Kernels do this to save room, and some to hand data from one buffer to another, so such buffers are views of one run of
bytes. Rows of a tile lie one after the other there; the fractal layout of L1 and L0 is not modelled, so data handed
on between two shapes in those memories would differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.stmt import Alloc
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.program import Program


def pools(program: Program, addresses: Mapping[str, int], arithmetic: Any) -> tuple[dict[int, int], dict[str, int]]:
    """Buffer number -> first byte, and memory -> bytes, for the memories in which placed buffers overlap.

    Nothing for an arithmetic that keeps elements in another form than the hardware does.
    """
    placed: dict[str, dict[Buffer, tuple[int, int]]] = {}
    for _, _, body in program.cores if addresses else ():
        for stmt in statements(body):
            if isinstance(stmt, Alloc) and stmt.buffer.name in addresses:
                size = _size(stmt.buffer, arithmetic)
                start = addresses[stmt.buffer.name]
                if size is None or start % arithmetic.storage(stmt.buffer.dtype).itemsize:
                    return {}, {}
                placed.setdefault(stmt.buffer.memory, {})[stmt.buffer] = (start, start + size)
    numbers: dict[int, int] = {}
    sizes: dict[str, int] = {}
    for memory, found in placed.items():
        spans = sorted(found.values())
        if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(spans)):
            numbers.update({buffer.number: span[0] for buffer, span in found.items()})
            sizes[memory] = -(-max(end for _, end in spans) // 32) * 32
    return numbers, sizes


def _size(buffer: Buffer, arithmetic: Any) -> int | None:
    """Bytes; None for an extent that is not known, or an element that is kept in another size."""
    itemsize = arithmetic.storage(buffer.dtype).itemsize
    total = itemsize
    for extent in buffer.shape:
        if not isinstance(extent, int):
            return None
        total *= extent
    return total if itemsize * 8 == dtypes.bits(buffer.dtype) else None
