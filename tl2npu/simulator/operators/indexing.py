"""``T.tile`` operators that make indices or move elements by them: progressions, gathers, transposition.

Sources: tl_templates/ascend/common.h (``GatherMask``, ``Gather``, ``Gatherb``, ``transpose``), codegen_ascend.cc.
Offsets of ``gather`` are bytes, from where the source begins; they may lead beyond its region.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import from_here, is_tile, itemsize, number, put, region, same_type, span, take

"""Bytes of the blocks that addresses and strides of vector instructions count in."""


@semantics("tile.createvecindex", writes="dst")
def createvecindex(A: Any, dst: Any, firstValue: Any) -> None:
    """Element ``i`` of the flat buffer is ``firstValue + i``."""
    put("createvecindex", dst, progression(A, dst, firstValue, 1, dst.size))


@semantics("tile.arith_progression", writes="buffer", raw=True)
def arith_progression(A: Any, buffer: Any, first_value: Any, diff_value: Any, count: Any) -> None:
    """Element ``i`` of the first ``count`` is ``first_value + i * diff_value``."""
    target = span("arith_progression", buffer, count, "w")
    target[...] = progression(A, target, number(first_value), number(diff_value), target.size)


def progression(A: Any, like: Any, first: Any, step: Any, count: int) -> Any:
    """``first + i * step`` in the element type of a tile."""
    steps = np.arange(count)
    steps = A.cast(steps, A.name_of(like)) if A.is_float(like) else steps.astype(like.dtype)
    return A.add(A.mul(steps, A.like(step, like)), A.like(first, like))


@semantics("tile.gather", reads="src src_offset", writes="dst", raw=True)
def gather(A: Any, dst: Any, src: Any, src_offset: Any, src_base_addr: Any) -> None:
    """``dst[i]`` is the element of ``src`` at byte ``src_base_addr + src_offset[i]``.

    As many as the smaller of ``dst`` and ``src_offset`` has.
    """
    target, offsets = region("gather", dst, "w"), region("gather", src_offset, "r")
    same_type("gather", src.array, target)
    count = min(target.size, offsets.size)
    whole = offsets.reshape(-1)[:count].astype(np.int64) + int(number(src_base_addr))
    size = itemsize(src)
    if np.any(whole % size):
        raise SimulatorError(
            f"T.tile.gather: byte offset {int(whole[whole % size != 0][0])} is inside of a {src.dtype}"
        )
    put("gather", target, take("gather", from_here(src, "r"), whole // size))


_PATTERNS = {
    "P0101": (0, 2),
    "P1010": (1, 2),
    "P0001": (0, 4),
    "P0010": (1, 4),
    "P0100": (2, 4),
    "P1000": (3, 4),
    "P1111": (0, 1),
}


@semantics("tile.gather_mask", reads="src src1Pattern", writes="dst")
def gather_mask(A: Any, dst: Any, src: Any, src1Pattern: Any) -> None:
    """The elements of a pattern, packed: the name of a fixed one, or a buffer of positions.

    (The compiler turns a buffer of positions into byte offsets in place: read it again and it holds those. Nothing
    of that is modelled.)
    """
    same_type("gather_mask", src, dst)
    flat = src.reshape(-1)
    if is_tile(src1Pattern):
        if A.is_float(src1Pattern):
            raise SimulatorError("T.tile.gather_mask: the positions have to be uint32")
        put("gather_mask", dst, take("gather_mask", flat, src1Pattern.reshape(-1).astype(np.int64)))
        return
    if src1Pattern not in _PATTERNS:
        raise SimulatorError(f"T.tile.gather_mask: no pattern {src1Pattern!r}; there are {', '.join(_PATTERNS)}")
    start, step = _PATTERNS[src1Pattern]
    put("gather_mask", dst, flat[start::step])


@semantics("tile.transpose", reads="src", writes="dst")
def transpose(A: Any, dst: Any, src: Any) -> None:
    """Rows and columns exchanged: ``src`` is ``[M, N]`` (multiples of 16), ``dst`` has as many elements.

    A flat buffer counts as 16 by 16.
    """
    same_type("transpose", src, dst)
    shape = src.shape[:2] if src.ndim >= 2 else (16, 16)
    if shape[0] % 16 or shape[1] % 16:
        raise SimulatorError(f"T.tile.transpose of {list(src.shape)}: rows and columns have to be multiples of 16")
    if src.size != shape[0] * shape[1] or dst.size < src.size:
        raise SimulatorError(f"T.tile.transpose of {list(src.shape)} into {list(dst.shape)}")
    put("transpose", dst, src.reshape(shape).T)
