"""``T.copy`` and relatives: moving tiles between memories.

Extents come from the side that has them; a start index takes the other side's, aligned to the trailing axes
(tilelang/language/copy.py:npu_copy_v2). The global side is clipped to the tensor; what a load clips away is filled with
``pad_value`` (default 0) on the chip. The element type is converted on the way where source and destination differ: on
an NPU's chip by the vector cast (common.h:copy_ub_to_ub), which saturates integers and has some pairs of types only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.dialects import element_types
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.dtypes import bits
from tl2npu.simulator.machine.access import Index
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.casts import converted
from tl2npu.simulator.operators.registry import semantics

_BLOCK = 32
"""Bytes."""


@semantics("copy", reads="src", writes="dst", raw=True)
def copy(
    A: Any,
    src: Operand,
    dst: Operand,
    enable_relu: bool = False,
    transpose: bool | None = False,
    pad_value: Any = None,
    walk: Any = None,
) -> None:
    """Ascend's ``T.copy(src, dst, enable_relu, transpose, pad_value)``.

    ``walk``: how the compiler reaches a part of a fractal tile (``lowering.fractals``).
    """
    check_walk(walk, src, dst)
    if transpose:
        _transposed(A, src, dst)
        return
    transfer(A, src, dst, pad=0 if pad_value is None else pad_value, relu=enable_relu, clip_below=False)


def transfer(A: Any, src: Operand, dst: Operand, pad: Any, relu: bool, clip_below: bool) -> None:
    """Move the source region to the destination region. ``clip_below``: as a GPU does."""
    if not clip_below:
        _check_types(src, dst)
    part = overlap(src, dst, clip_below)
    if dst.memory == "l1" and src.memory == "global":
        _clear_tile(A, dst, part)
    elif dst.memory != "global" and (not part.full or (dst.late and src.memory == "global" and not clip_below)):
        extents = part.dst_extents
        if not clip_below and src.memory == "global":  # rows are counted along the last axis but one (common.h:199-219)
            extents = _filled(dst, part)
        whole = dst.view(dst.starts, extents, "w")
        whole[...] = A.like(pad, whole)
    if part.empty:
        return
    values = src.view(*part.source, "r")
    target = dst.view(*part.target, "w")
    if relu:
        values = A.maximum(values, A.number(0, src.dtype))
    if src.dtype != dst.dtype:
        if not clip_below and src.memory == dst.memory == "ub":
            mode = element_types.copy_mode(src.dtype, dst.dtype)
            values = converted(A, values, src.dtype, dst.dtype, mode, dst.access.registers)
        else:
            values = A.cast(values, dst.dtype)
    target[...] = values if values.shape == target.shape else values.reshape(target.shape)


def _filled(dst: Operand, part: Overlap) -> Index:
    """What a load that ends with its tensor fills: all of the tile with types that ``Duplicate`` has, else the last
    block of 32 bytes of each row that it reaches (common.h:40-45, ``DataCopyPad``)."""
    rank, size = min(len(part.dst_extents), 2), bits(dst.dtype) // 8
    last = part.dst_extents[-rank:]
    if size not in (2, 4):
        *rows, columns = (0,) * rank if part.empty else part.target[1][-rank:]
        last = (*rows, min(-(-columns * size // _BLOCK) * _BLOCK // size, last[-1]))
    elif dst.late:  # the instruction has the rows of the tile (ascend.cc:140, ``compute_blocklen``)
        last = (dst.array.shape[-2], last[-1])
        if dst.starts[-2]:
            dst.fail(f"the load of rows from {dst.starts[-2]} on fills {last[0]} rows of {dst.name}, behind its end")
    return (*(1 for _ in part.dst_extents[:-rank]), *last)


def check_walk(walk: Any, src: Operand, dst: Operand) -> None:
    """Raises SimulatorError where the compiler takes other elements than a part of L1 or L0C has."""
    if walk is not None:
        name, how = walk
        src_extents, dst_extents = extents_of(src, dst)
        how.check(src if name == "src" else dst, src_extents if name == "src" else dst_extents)


def _check_types(src: Operand, dst: Operand) -> None:
    """The instructions between global memory and UB or L1 convert nothing: ``copy_gm_to_ub`` and its relatives have one
    type for both sides (common.h:55-57, 198-199, 229), and the compiler of the generated source rejects another."""
    memories, types = {src.memory, dst.memory}, {src.dtype, dst.dtype}
    if memories in ({"global", "ub"}, {"global", "l1"}) and len(types) > 1 and not types <= {"bool", "int8", "uint8"}:
        text = f"a copy from {src.name} ({src.dtype}) to {dst.name} ({dst.dtype}) between global memory and the chip"
        src.fail(text)


def _clear_tile(A: Any, dst: Operand, part: Overlap) -> None:
    """A load that fills less than the tile of L1 clears all of the tile before, if it begins where the tile begins; one
    that begins elsewhere in it leaves what is there (common.h:57-73, ``need_clear``)."""
    tile = (1,) * (dst.array.ndim - 2) + dst.array.shape[-2:]
    if any(dst.starts) or part.target[1] == tile:
        return
    whole = dst.view((0,) * len(tile), tile, "w")
    whole[...] = A.like(0, whole)


@dataclass(frozen=True)
class Overlap:
    """What a copy moves: start and extents on both sides. ``full``: all of the destination region."""

    source: tuple[Index, Index]
    target: tuple[Index, Index]
    dst_extents: Index
    full: bool
    empty: bool


def overlap(src: Operand, dst: Operand, clip_below: bool) -> Overlap:
    """The part of two regions that lies in both tensors. Raises SimulatorError where the extents do not agree."""
    src_extents, dst_extents = extents_of(src, dst)
    src_lo, src_hi = _valid(src, src_extents, clip_below, dst.memory)
    dst_lo, dst_hi = _valid(dst, dst_extents, clip_below, src.memory)
    if src.memory == "global" and any(end == 0 < extent for end, extent in zip(src_hi, src_extents, strict=True)):
        src.access.behind(src.number, src.site)
    src_axes = [n for n, e in enumerate(src_extents) if e != 1]
    dst_axes = [n for n, e in enumerate(dst_extents) if e != 1]
    dropped = 0
    if len(src_axes) != len(dst_axes):
        src_axes, dst_axes, dropped = _one_row(src, dst, src_axes, dst_axes, clip_below)
        if len(src_axes) != len(dst_axes) and not clip_below:  # a column of a wider tile: validCol is 1
            from_end = {n - len(src_extents) for n in src_axes} | {n - len(dst_extents) for n in dst_axes}
            if min(from_end) >= -min(len(src_extents), len(dst_extents)):
                src_axes, dst_axes = (
                    sorted(n + len(extents) for n in from_end) for extents in (src_extents, dst_extents)
                )
        if len(src_axes) != len(dst_axes):
            _mismatch(src, dst, src_extents, dst_extents)
    lows = {}
    sizes = {}
    for a, b in zip(src_axes, dst_axes, strict=True):
        if src_extents[a] != dst_extents[b] and src.memory != "global" and dst.memory != "global":
            _mismatch(src, dst, src_extents, dst_extents)
        if not clip_below and dst.memory != "global" and src_extents[a] > dst_extents[b]:
            _mismatch(src, dst, src_extents, dst_extents)  # a load goes on behind the end of its tile (E82)
        if not clip_below and src.memory != "global" == dst.memory and dst_hi[b] > src_extents[a]:
            _mismatch(
                src, dst, src_extents, dst_extents
            )  # and so does a store: it counts what the tensor has (validRow)
        low = max(src_lo[a], dst_lo[b])
        high = min(src_hi[a], dst_hi[b], src_extents[a], dst_extents[b])
        lows[a] = (low, b)
        sizes[a] = max(high - low, 0)
    outside = any(s >= t for n, (s, t) in enumerate(zip(src_lo, src_hi, strict=True)) if n not in src_axes) or any(
        s >= t for n, (s, t) in enumerate(zip(dst_lo, dst_hi, strict=True)) if n not in dst_axes
    )
    empty = outside or any(size <= 0 for size in sizes.values())
    full = not empty and not dropped and all(sizes[a] == dst_extents[lows[a][1]] for a in src_axes)
    src_start, src_size = list(src.starts), [1] * len(src_extents)
    dst_start, dst_size = list(dst.starts), [1] * len(dst_extents)
    outer = src if src.memory == "global" else dst if dst.memory == "global" else None
    several = outer is not None and src.memory != dst.memory and not clip_below
    moved = _clamped(src_extents if outer is src else dst_extents) if several else ()
    for a in src_axes:
        low, b = lows[a]
        src_start[a] += low
        dst_start[b] += low
        if not several or (a if outer is src else b) in moved:  # of other axes the first element (ascend.cc:330-389)
            src_size[a] = dst_size[b] = sizes[a]
    source, target = (tuple(src_start), tuple(src_size)), (tuple(dst_start), tuple(dst_size))
    return Overlap(source, target, dst_extents, full, empty)


def _one_row(
    src: Operand, dst: Operand, src_axes: list[int], dst_axes: list[int], gpu: bool
) -> tuple[list[int], list[int], int]:
    """Ascend: a tensor in global memory with one axis is one row of a tile on the chip (ascend.cc:379-389,
    ``validRow`` is 1). The axes that take part, and how many of the destination do not."""
    if not gpu and src.memory == "global" != dst.memory and len(src.array.shape) == len(src_axes) == 1:
        return src_axes, dst_axes[-1:], len(dst_axes) - 1
    if not gpu and dst.memory == "global" != src.memory and len(dst.array.shape) == len(dst_axes) == 1:
        return src_axes[-1:], dst_axes, 0
    return src_axes, dst_axes, 0


def extents_of(src: Operand, dst: Operand) -> tuple[Index, Index]:
    """The extents of both sides, all axes."""
    if src.extents is not None and dst.extents is not None:
        return src.extents, dst.extents
    if src.extents is not None:
        return src.extents, _aligned(src.extents, dst)
    if dst.extents is not None:
        return _aligned(dst.extents, src), dst.extents
    return (1,) * len(src.starts), (1,) * len(dst.starts)


def _aligned(extents: Index, other: Operand) -> Index:
    """Extents for a start index: the trailing axes of the side that has them."""
    rank = len(other.starts)
    if len(extents) >= rank:
        lost = [e for e in extents[: len(extents) - rank] if e != 1]
        if not lost:
            return tuple(extents[len(extents) - rank :])
        squeezed = [e for e in extents if e != 1]
        if len(squeezed) > rank == 1 and other.memory == "global":
            return tuple(extents[-1:])
        if len(squeezed) > rank:
            other.fail(f"a copy of a tile of shape {list(extents)} to a start index of {other.name} with {rank} axes")
        return (1,) * (rank - len(squeezed)) + tuple(squeezed)
    return (1,) * (rank - len(extents)) + tuple(extents)


def _valid(side: Operand, extents: Index, clip_below: bool, other: str) -> tuple[list[int], list[int]]:
    """Per axis the part of the region, relative to its start, that lies in the tensor; all of it on the chip.

    Raises OutOfBounds for a region that begins before the tensor. One that begins behind it is empty, but not in a copy
    to L1 or from L0C: those take no rows for all rows (common.h:copy_gm_to_l1, ``realTailM == 0``). Only the last two
    axes longer than 1 end with the tensor (ascend.cc:330-364).
    """
    low, high = [0] * len(extents), list(extents)
    if side.memory == "global":
        clamped = range(len(extents)) if clip_below else _clamped(extents)
        for axis, (start, extent, size) in enumerate(zip(side.starts, extents, side.array.shape, strict=True)):
            high[axis] = max(min(extent, size - start), 0)
            if start < 0 and clip_below:
                low[axis] = -start
            behind = (start >= size and other in ("l1", "l0c")) or (start + extent > size and axis not in clamped)
            if not clip_below and (start < 0 or (behind and extent > 0)):
                side.access.outside(side.number, side.array, side.starts, extents, side.site)
    return low, high


def _clamped(extents: Index) -> tuple[int, ...]:
    """The axes in which a copy ends where the tensor ends (ascend.cc:find_active_dim_indices)."""
    last = len(extents) - 1
    active = [n for n, extent in enumerate(extents) if extent != 1 or n == last]
    return (last - 1, last) if len(active) == 1 else tuple(active[-2:])


def _mismatch(src: Operand, dst: Operand, src_extents: Index, dst_extents: Index) -> None:
    src.fail(f"a copy of {src.name}{list(src_extents)} to {dst.name}{list(dst_extents)}: the extents do not agree")


def _transposed(A: Any, src: Operand, dst: Operand) -> None:
    """L1 to L0A or L0B, rows and columns exchanged."""
    if src.extents is None and dst.extents is not None:
        extents = (1,) * (len(src.starts) - 2) + tuple(reversed([e for e in dst.extents if e != 1][-2:]))
        src_extents, dst_extents = extents, dst.extents
    else:
        src_extents, dst_extents = extents_of(src, dst)
    values = src.view(src.starts, src_extents, "r")
    values = values.reshape([e for e in src_extents if e != 1] or [1])
    target = dst.view(dst.starts, dst_extents, "w")
    if values.ndim != 2:
        src.fail("a transposing copy needs two axes")
    target[...] = (
        A.cast(values.T, dst.dtype).reshape(target.shape)
        if src.dtype != dst.dtype
        else values.T.reshape(np.shape(target))
    )


@semantics("tile.atomic_add", reads="src dst", writes="dst", raw=True)
def atomic_add(A: Any, dst: Operand, src: Operand, walk: Any = None) -> None:
    """``T.tile.atomic_add``: a tile of UB or L0C added to global memory, ``dst += src``, of the same element type.

    Extents and ``walk`` are those of a copy; what lies outside of the tensor is left out
    (tilelang/language/ascend_tile.py:atomic_add, src/op/ascend.cc:AscendAtomicAdd).
    """
    for side, name in ((dst, "dst"), (src, "src")):
        if not hasattr(side, "memory"):
            raise SimulatorError(f"T.tile.atomic_add: {name} is a number, not a tensor")
    if dst.memory != "global" or src.memory == "global":
        raise SimulatorError(
            f"T.tile.atomic_add adds on-chip memory to global memory, not {src.name} ({src.memory}) to "
            f"{dst.name} ({dst.memory})"
        )
    if src.dtype != dst.dtype:
        raise SimulatorError(f"T.tile.atomic_add of {src.dtype} to {dst.dtype}: the element types have to be the same")
    if dst.extents is None and src.extents is not None and len(src.extents) > len(dst.starts):
        raise SimulatorError(
            f"T.tile.atomic_add: {src.name} has {len(src.extents)} axes, the index of {dst.name} only {len(dst.starts)}"
        )
    check_walk(walk, src, dst)
    part = overlap(src, dst, clip_below=False)
    if part.empty:
        return
    values = src.view(*part.source, "r")
    target = dst.view(*part.target, "a")
    target[...] = A.add(target, values.reshape(target.shape))
