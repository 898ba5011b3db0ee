"""``T.copy`` and relatives on a GPU (tilelang/language/copy_op.py, src/op/copy.cc).

Extents come from the side that has them; a start index takes the other side's, aligned to the trailing axes. Where
the sides do not have as many axes longer than 1, axes of extent 1 take the other side's extent. What is read outside of
a global tensor is 0, what would be written there is dropped. Conversions round to nearest even, to integers towards 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.simulator.machine.access import Index
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.registry import semantics

_PRIORITY = {"global": 0, "shared": 1}
"""Whose extents count where the sides differ: registers before shared memory before global memory."""


@dataclass(frozen=True)
class Overlap:
    """What moves: starts and sizes of both sides. ``full``: all that was asked for lies in both tensors."""

    src: Operand
    dst: Operand
    src_start: Index
    src_size: Index
    dst_start: Index
    dst_size: Index

    def views(self, read: str, write: str) -> tuple[np.ndarray, np.ndarray]:
        """Both parts, all axes."""
        return self.src.view(self.src_start, self.src_size, read), self.dst.view(self.dst_start, self.dst_size, write)


def valid(side: Operand, extents: Index) -> list[tuple[int, int]]:
    """Per axis the part of the region, relative to its start, that lies in a global tensor; all of it on the chip."""
    if side.memory != "global":
        return [(0, extent) for extent in extents]
    return [
        (max(-start, 0), min(extent, size - start))
        for start, extent, size in zip(side.starts, extents, side.array.shape, strict=True)
    ]


def both_extents(src: Operand, dst: Operand) -> tuple[list[int], list[int]]:
    """The extents of both sides, all axes, with equally many longer than 1."""
    left, right = src.extents, dst.extents
    if left is None and right is None:
        return [1] * len(src.starts), [1] * len(dst.starts)
    a = list(left) if left is not None else [1] * len(right or ())
    b = list(right) if right is not None else [1] * len(a)
    if sum(e != 1 for e in a) != sum(e != 1 for e in b):
        for n in range(1, min(len(a), len(b)) + 1):
            wide = max(a[-n], b[-n])
            a[-n] = wide if a[-n] != b[-n] else a[-n]
            b[-n] = wide if a[-n] != b[-n] else b[-n]
    return _fitted(a, src), _fitted(b, dst)


def _fitted(extents: list[int], side: Operand) -> list[int]:
    rank = len(side.starts)
    extra = len(extents) - rank
    if extra > 0:
        if any(e != 1 for e in extents[:extra]):
            squeezed = [e for e in extents if e != 1]
            if len(squeezed) > rank:
                side.fail(f"a copy of a tile of shape {extents} to {side.name}, which has {rank} axes")
            return [1] * (rank - len(squeezed)) + squeezed
        return extents[extra:]
    return [1] * -extra + extents


def extents_of(src: Operand, dst: Operand) -> tuple[list[int], list[int]]:
    """The same, with equal extents on the axes that move together."""
    a, b = both_extents(src, dst)
    moving_a, moving_b = _moving(a), _moving(b)
    if len(moving_a) != len(moving_b):
        _mismatch(src, dst, a, b)
    for i, j in zip(moving_a, moving_b, strict=True):
        if a[i] != b[j]:
            first, second = _PRIORITY.get(src.memory, 2), _PRIORITY.get(dst.memory, 2)
            if first > 0 and second > 0:
                _mismatch(src, dst, a, b)
            size = a[i] if first >= second else b[j]
            a[i] = b[j] = size
    return a, b


def _moving(extents: list[int]) -> list[int]:
    return [n for n, e in enumerate(extents) if e != 1]


def _mismatch(src: Operand, dst: Operand, a: list[int], b: list[int]) -> None:
    src.fail(f"a copy of {src.name}{a} to {dst.name}{b}: the extents do not agree")


def overlap(src: Operand, dst: Operand) -> Overlap | None:
    """The part of a move that lies in both tensors; None if nothing does."""
    a, b = extents_of(src, dst)
    from_part, to_part = valid(src, tuple(a)), valid(dst, tuple(b))
    for i, j in zip(_moving(a), _moving(b), strict=True):
        part = max(from_part[i][0], to_part[j][0]), min(from_part[i][1], to_part[j][1])
        from_part[i] = to_part[j] = part
    if any(high <= low for low, high in (*from_part, *to_part)):
        return None
    return Overlap(
        src,
        dst,
        tuple(s + low for s, (low, _) in zip(src.starts, from_part, strict=True)),
        tuple(high - low for low, high in from_part),
        tuple(s + low for s, (low, _) in zip(dst.starts, to_part, strict=True)),
        tuple(high - low for low, high in to_part),
    )


@semantics("copy", "tma_copy", "async_copy", reads="src", writes="dst", gpu=True, raw=True)
def copy(A: Any, src: Operand, dst: Operand) -> None:
    """GPU ``T.copy(src, dst)``."""
    extents = extents_of(src, dst)[1]
    found = overlap(src, dst)
    if found is None or list(found.dst_size) != extents:
        part = valid(dst, tuple(extents))
        if all(high > low for low, high in part):
            start = tuple(s + low for s, (low, _) in zip(dst.starts, part, strict=True))
            dst.view(start, tuple(high - low for low, high in part), "w")[...] = A.number(0, dst.dtype)
    if found is None:
        if src.memory == "global":
            src.access.behind(src.number, src.site)
        return
    values, target = found.views("r", "w")
    if src.dtype != dst.dtype:
        values = A.cast(values, dst.dtype)
    target[...] = values if values.shape == target.shape else values.reshape(target.shape)


@semantics("transpose", reads="src", writes="dst", gpu=True)
def transpose(A: Any, src: Any, dst: Any) -> None:
    """GPU ``T.transpose(src, dst)``: the last two axes exchanged."""
    values = src.swapaxes(-1, -2)
    dst[...] = values if values.dtype == dst.dtype else A.cast(values, A.name_of(dst))


@semantics("im2col", "c2d_im2col", reads="img", writes="col", gpu=True)
def im2col(
    A: Any, img: Any, col: Any, nhw_step: Any, c_step: Any, kernel: Any, stride: Any, dilation: Any, pad: Any
) -> None:
    """Patches of an image ``(N, H, W, C)`` as rows: tile ``(nhw_step, c_step)`` of that matrix (src/op/copy.cc)."""
    _, height, width, channels = img.shape
    out_h = (height + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    out_w = (width + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    rows, columns = col.shape[-2:]
    m = np.arange(rows)[:, None] + int(nhw_step) * rows
    k = np.arange(columns)[None, :] + int(c_step) * columns
    batch = m // (out_h * out_w)
    y = m % (out_h * out_w) // out_w * stride + k // (kernel * channels) * dilation - pad
    x = m % out_w * stride + k // channels % kernel * dilation - pad
    inside = (batch < img.shape[0]) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    inside = inside & (k < kernel * kernel * channels)
    key = tuple(np.where(inside, i, 0) for i in (batch, y, x, np.broadcast_to(k % channels, inside.shape)))
    col[...] = np.where(inside, img[key], A.number(0, A.name_of(img))).astype(col.dtype).reshape(col.shape)
