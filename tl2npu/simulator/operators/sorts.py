"""Sorting on tiles. A sorted run is a row of 8-byte pairs (value, index), largest value first.

In float32 an index lies behind its value. ``sort`` and ``topk`` make the indices themselves and hold them as float
*numbers*, in float16 too; ``sort32`` takes the bits of a uint32 that the caller gives (in float16 behind a zero).
Equal values keep the order in which they come. Source: tl_templates/ascend/common.h (``Sort``, ``TopK``,
``MergeSort``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import is_tile, put, same_type

_GROUP = 32
"""Elements that ``sort32`` sorts among themselves."""


@semantics("tile.sort", reads="src", writes="dst src")
def sort(A: Any, dst: Any, src: Any, actual_num: Any) -> None:
    """All pairs of the first ``actual_num`` elements and their positions.

    Up to the next multiple of 32 there come pairs of minus infinity; in float32 they are written into ``src`` too.
    """
    count = -(-int(actual_num) // _GROUP) * _GROUP
    put("sort", dst, sorted_pairs(A, "sort", dst, src, int(actual_num), count))


def sorted_pairs(A: Any, name: str, dst: Any, src: Any, actual: int, count: int) -> Any:
    """``count`` (value, position) pairs, flat; elements from ``actual`` on are taken as minus infinity."""
    _floats(A, name, src)
    same_type(name, src, dst)
    if not 0 <= actual <= src.size:
        raise SimulatorError(f"T.tile.{name}: {actual} elements of a tile {list(src.shape)} that has {src.size}")
    values = np.full(count, A.literal(-np.inf, src), src.dtype)
    values[:actual] = src.reshape(-1)[:actual]
    if actual < count and A.name_of(src) == "float32":
        rest = min(count, src.size) - actual
        put(name, src, values[actual : actual + rest], actual)
    order = A.descending(values)
    pairs = np.empty((count, 2), src.dtype)
    pairs[:, 0] = values[order]
    pairs[:, 1] = A.cast(order, A.name_of(src))
    return pairs


def _floats(A: Any, name: str, tile: Any) -> None:
    if not is_tile(tile) or not A.is_float(tile) or A.name_of(tile) not in ("float32", "float16"):
        raise SimulatorError(f"T.tile.{name}: the values have to be a tile of float32 or float16")


@semantics("tile.topk", reads="src", writes="dst src")
def topk(A: Any, dst: Any, src: Any, K: Any, actual_num: Any) -> None:
    """The first ``K`` pairs of what ``sort`` gives; what else fits into the last 32 bytes follows."""
    actual = int(actual_num)
    pairs = sorted_pairs(A, "topk", dst, src, actual, -(-max(actual, src.size) // _GROUP) * _GROUP).reshape(-1)
    wanted = 2 * int(K)
    if wanted > pairs.size:
        raise SimulatorError(f"T.tile.topk: {int(K)} of {pairs.size // 2} elements")
    if wanted > dst.size:
        raise SimulatorError(f"T.tile.topk: {int(K)} pairs do not fit {list(dst.shape)}")
    each = 8 if A.name_of(src) == "float32" else 16
    put("topk", dst, pairs[: min(-(-wanted // each) * each, dst.size, pairs.size)])


@semantics("tile.sort32", reads="src0 src1", writes="dst")
def sort32(A: Any, dst: Any, src0: Any, src1: Any) -> None:
    """Blocks of 32 elements sorted among themselves; ``src1`` has their indices (uint32)."""
    _floats(A, "sort32", src0)
    same_type("sort32", src0, dst)
    count = src0.size // _GROUP * _GROUP
    if src1.size < count or A.is_float(src1) or src1.dtype.itemsize != 4:
        raise SimulatorError(f"T.tile.sort32: {count} indices of 4 bytes are needed, src1 is {list(src1.shape)}")
    values = src0.reshape(-1)[:count].reshape(-1, _GROUP)
    order = A.descending(values)
    ordered = np.take_along_axis(values, order, -1).reshape(-1)
    indices = np.take_along_axis(src1.reshape(-1)[:count].reshape(-1, _GROUP), order, -1).reshape(-1)
    bits = A.same_bits(np.ascontiguousarray(indices), A.name_of(src0)).reshape(count, -1)
    parts = [ordered[:, None], bits]
    if bits.shape[1] == 2:
        parts.insert(1, np.full((count, 1), A.literal(0, src0), src0.dtype))
    put("sort32", dst, np.concatenate(parts, axis=1))


@semantics("tile.merge_sort", reads="src0 src1 src2 src3", writes="dst")
def merge_sort(A: Any, dst: Any, src0: Any, src1: Any, src2: Any = None, src3: Any = None) -> None:
    """One run of two to four; each of them has to be sorted."""
    runs = [s for s in (src0, src1, src2, src3) if s is not None]
    for run in runs:
        if A.name_of(run) == "float16":
            raise UnsupportedOperator(
                "T.tile.merge_sort of float16: the compiler counts pairs of two elements, the instruction of four"
            )
        _floats(A, "merge_sort", run)
        same_type("merge_sort", run, dst)
        values = run.reshape(-1, 2)[:, 0]
        if not bool(np.all(np.logical_not(A.less(values[:-1], values[1:])))):
            raise SimulatorError(f"T.tile.merge_sort: a source {list(run.shape)} is not in descending order")
    pairs = np.concatenate([run.reshape(-1)[: run.size // 2 * 2].reshape(-1, 2) for run in runs])
    put("merge_sort", dst, pairs[A.descending(pairs[:, 0])])
