"""``T.copy``: which elements it moves, on a GPU and on Ascend.

Extents come from the side that has them; a start index takes the other side's, aligned to the trailing axes
(tilelang/language/copy.py). What lies behind a tensor's end is not moved. A GPU fills it with zeros; a load of Ascend
fills its tile with ``pad_value`` (compiler-facts 9), one to L1 clears a tile that it begins in front
(common.h, ``need_clear``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tl2npu.dialects import element_types
from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import Fault, NotChecked, Region, Row, whole_number
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.model import Memory

_RANK = {Memory.GM: 0, Memory.L0C: 2}
_ON_CUBE = frozenset({Memory.L1, Memory.L0A, Memory.L0B, Memory.L0C})


def copy(
    src: Region, dst: Region, pad: Any, gpu: bool, vid: int, combine: Callable[[Any, Any], Any] | None = None
) -> None:
    """Move the elements, or ``combine`` what is there with what comes; ``vid`` is the vector core whose half of the
    rows is meant where a side is halved."""
    if not gpu:
        src, dst = _own_rows(src, dst, vid)
    extents = _gpu_extents(src, dst) if gpu else _extents(src, dst)
    axes = [[n for n, extent in enumerate(side) if extent != 1] for side in extents]
    if len(axes[0]) != len(axes[1]):
        axes = _from_the_end(src, dst, extents, axes)
    starts = [[whole_number(item, side.tile.name) for item in side.starts] for side in (src, dst)]
    if gpu:
        extents = _counting(src, dst, extents, axes)
    low, high = _moved(src, dst, extents, axes, starts)
    on_chip = not dst.tile.in_global
    full = [extents[1][n] for n in axes[1]]
    if on_chip and src.tile.in_global and (any(low) or high != full or not full) and not (high == full == []):
        _fill(dst, starts[1], extents[1], pad, gpu)
    if not _in_reach(src, dst, axes, starts):
        # The compiler clamps the last two axes of a tensor, those of extent 1 too (ascend.cc), and fills what is left.
        if on_chip and src.tile.in_global and not gpu and _in_reach(src, dst, axes, starts, clamped=2):
            _fill(dst, starts[1], extents[1], pad, gpu)
        return
    if any(b <= a for a, b in zip(low, high, strict=True)):
        return
    if not gpu and src.tile.in_global != dst.tile.in_global:  # it has the last two axes of the tensor (ascend.cc)
        own = axes[0] if src.tile.in_global else axes[1]
        rest = len(own) - 2 + (own[-1:] != [len(starts[0 if src.tile.in_global else 1]) - 1])
        high = [first + 1 if n < rest else last for n, (first, last) in enumerate(zip(low, high, strict=True))]
    places = _slices(starts[0], axes[0], low, high), _slices(starts[1], axes[1], low, high)
    if src.tile.slots is not None:
        src.tile.slots.take(places[0])
    if dst.tile.slots is not None:
        dst.tile.slots.put(places[1], combine is not None)
    dst.tile.touch()
    source, target = src.tile.data[places[0]], dst.tile.data[places[1]]
    if source.size != target.size:
        raise Fault(f"a copy of {source.size} elements of `{src.tile.name}` to {target.size}")
    values = source if combine is None else combine(target, source.reshape(target.shape))
    mode = "CAST_TRUNC"
    if not gpu and src.tile.memory is dst.tile.memory is Memory.UB:
        mode = element_types.copy_mode(plain(src.tile.dtype), plain(dst.tile.dtype))
    target[...] = arithmetic.cast(values, dst.tile.dtype, mode).reshape(target.shape)


def _own_rows(src: Region, dst: Region, vid: int) -> tuple[Region, Region]:
    """The parts of both sides that one vector core moves (``ascend_vid_reduction.cc``): its rows of the tensor, and of
    tiles of the cube core, which go through one."""
    for tile, other in ((src, dst), (dst, src)):
        if tile.tile.gathered and other.extents is not None:
            for axis, start in enumerate(other.starts):
                if isinstance(start, Row) and 2 * start.turns <= other.tile.shape[axis]:
                    starts = [*other.starts[:axis], start + vid * start.turns, *other.starts[axis + 1 :]]
                    moved = Region(other.tile, starts, other.extents)
                    return (tile, moved) if tile is src else (moved, tile)
        if not tile.tile.halved or (other.tile.memory not in _ON_CUBE and not other.tile.in_global):
            continue
        axis = len(other.tile.shape) - len(tile.tile.shape)
        if axis < 0:
            raise NotChecked(f"`{tile.tile.name}` has more axes than `{other.tile.name}`")
        rows = tile.tile.shape[0]
        starts, extents = list(other.starts), None if other.extents is None else list(other.extents)
        starts += [0] * (axis + 1 - len(starts))
        starts[axis] = whole_number(starts[axis], other.tile.name) + vid * rows
        if extents is not None and extents[axis] != 1:
            extents[axis] = max(extents[axis] // 2, 1)
        moved = Region(other.tile, starts, extents)
        return (tile, moved) if tile is src else (moved, tile)
    return src, dst


def _extents(src: Region, dst: Region) -> tuple[list[int], list[int]]:
    if src.extents is not None and dst.extents is not None:
        return list(src.extents), list(dst.extents)
    if src.extents is not None:
        return list(src.extents), _aligned(src.extents, dst)
    if dst.extents is not None:
        return _aligned(dst.extents, src), list(dst.extents)
    return [1] * len(src.starts), [1] * len(dst.starts)


def _gpu_extents(src: Region, dst: Region) -> tuple[list[int], list[int]]:
    """``legalize_pairwise_extents`` (tilelang/utils/language.py): from the end, an extent of 1 takes the other one."""
    if src.extents is None and dst.extents is None:
        return [1] * len(src.starts), [1] * len(dst.starts)
    left = list(src.extents) if src.extents is not None else [1] * len(dst.shape)
    right = list(dst.extents) if dst.extents is not None else [1] * len(left)
    if sum(extent != 1 for extent in left) != sum(extent != 1 for extent in right):
        for n in range(1, min(len(left), len(right)) + 1):
            left[-n] = right[-n] = max(left[-n], right[-n])
    return _aligned(left, src), _aligned(right, dst)


def _counting(
    src: Region, dst: Region, extents: tuple[list[int], list[int]], axes: list[list[int]]
) -> tuple[list[int], list[int]]:
    """Where extents differ, those of registers count, then those of shared memory (tilelang/src/op/copy.cc)."""
    ranks = [_RANK.get(side.tile.memory, 1) for side in (src, dst)]
    left, right = extents
    for a, b in zip(*axes, strict=True):
        left[a] = right[b] = left[a] if ranks[0] >= ranks[1] else right[b]
    return left, right


def _aligned(extents: Sequence[int], other: Region) -> list[int]:
    rank = len(other.starts)
    if len(extents) < rank:
        return [1] * (rank - len(extents)) + list(extents)
    if all(extent == 1 for extent in extents[: len(extents) - rank]):
        return list(extents[len(extents) - rank :])
    several = [extent for extent in extents if extent != 1]
    if len(several) > rank:
        raise Fault(f"a copy of a tile with {len(several)} axes to a place in `{other.tile.name}` with {rank}")
    return [1] * (rank - len(several)) + several


def _from_the_end(
    src: Region, dst: Region, extents: tuple[list[int], list[int]], axes: list[list[int]]
) -> list[list[int]]:
    """An axis of extent 1 on one side only: it is the one as far from the end."""
    ends = {n - len(extents[0]) for n in axes[0]} | {n - len(extents[1]) for n in axes[1]}
    if ends and min(ends) < -min(len(extents[0]), len(extents[1])):
        raise Fault(f"a copy of `{src.tile.name}` to `{dst.tile.name}` of other extents")
    return [sorted(n + len(side) for n in ends) for side in extents]


def _moved(
    src: Region, dst: Region, extents: tuple[list[int], list[int]], axes: list[list[int]], starts: list[list[int]]
) -> tuple[list[int], list[int]]:
    low, high = [], []
    for a, b in zip(*axes, strict=True):
        first, last = 0, min(extents[0][a], extents[1][b])
        for side, axis, start in ((src, a, starts[0][a]), (dst, b, starts[1][b])):
            first, last = max(first, -start), min(last, side.tile.shape[axis] - start)
        low.append(first)
        high.append(max(last, first))
    return low, high


def _in_reach(src: Region, dst: Region, axes: list[list[int]], starts: list[list[int]], clamped: int = 0) -> bool:
    """Whether the single places of axes of extent 1 lie inside, but for the last ``clamped`` axes of the source."""
    for side, own, start in zip((src, dst), axes, starts, strict=True):
        last = len(start) - clamped if side is src else len(start)
        for axis, place in enumerate(start[:last]):
            if axis not in own and not 0 <= place < side.tile.shape[axis]:
                return False
    return True


def _slices(start: list[int], axes: list[int], low: list[int], high: list[int]) -> tuple[slice, ...]:
    found = [slice(place, place + 1) for place in start]
    for axis, first, last in zip(axes, low, high, strict=True):
        found[axis] = slice(start[axis] + first, start[axis] + last)
    return tuple(found)


def _fill(dst: Region, starts: list[int], extents: list[int], pad: Any, gpu: bool) -> None:
    if dst.tile.memory is Memory.L1 and not gpu:
        if any(starts):
            return
        dst.tile.data[...] = 0
        return
    whole = tuple(slice(max(start, 0), start + extent) for start, extent in zip(starts, extents, strict=True))
    dst.tile.data[whole] = arithmetic.cast(pad, dst.tile.dtype)
