"""Operators of npuir kernels that move elements about: gathers, permutations, joins, ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.npuir_vectors import one_type, put
from tl2npu.simulator.operators.registry import semantics


def _fits(name: str, values: Any, target: Any) -> None:
    if values.shape != target.shape:
        raise SimulatorError(f"T.{name}: a result {list(values.shape)} does not fit {list(target.shape)}")
    target[...] = values


@semantics("npuir.gather", reads="src indices", writes="dst")
def gather(A: Any, src: Any, dst: Any, indices: Any) -> None:
    """Elements of the last axis by index."""
    one_type(A, "gather", src, dst)
    if src.shape[:-1] != indices.shape[:-1]:
        raise SimulatorError(f"T.gather of {list(src.shape)} by {list(indices.shape)}")
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= src.shape[-1]):
        raise SimulatorError(f"T.gather: an index outside of the last axis of {list(src.shape)}")
    _fits("gather", np.take_along_axis(src, indices.astype(np.int64), axis=-1), dst)


@semantics("npuir.transpose", reads="src", writes="dst")
def transpose(A: Any, src: Any, dst: Any, permutation: Any) -> None:
    """Axis ``i`` of the result is axis ``permutation[i]`` of the source."""
    one_type(A, "transpose", src, dst)
    _fits("transpose", np.array(np.transpose(src, permutation)), dst)


@semantics("npuir.interleave", reads="srcs", writes="dst")
def interleave(A: Any, srcs: Any, dst: Any, channel_nums: int = 2) -> None:
    """The elements of several tiles in turn along the last axis."""
    one_type(A, "interleave", *srcs, dst)
    if len(srcs) != channel_nums or len({s.shape for s in srcs}) != 1:
        raise SimulatorError(f"T.interleave needs {channel_nums} tiles of one shape")
    _fits("interleave", np.stack(srcs, axis=-1).reshape(*srcs[0].shape[:-1], -1), dst)


@semantics("npuir.deinterleave", reads="src", writes="dsts")
def deinterleave(A: Any, src: Any, dsts: Any, channel_nums: int = 2, index_mode: str = "ALL_CHANNELS") -> None:
    """Every ``channel_nums``-th element of the last axis: of all channels, or of one."""
    one_type(A, "deinterleave", src, *dsts)
    channels = list(range(channel_nums)) if index_mode == "ALL_CHANNELS" else [int(index_mode[-1])]
    if src.shape[-1] % channel_nums or len(dsts) != len(channels):
        raise SimulatorError(f"T.deinterleave of {list(src.shape)} into {len(dsts)} tiles, {index_mode}")
    parts = [np.array(src[..., c::channel_nums]) for c in channels]
    for part, target in zip(parts, dsts, strict=True):
        _fits("deinterleave", part, target)


@semantics("npuir.arange", writes="dst")
def arange(A: Any, dst: Any, strides: Any, offset: Any = 0) -> None:
    """``dst[i, j] = offset + i * strides[0] + j * strides[1]``."""
    if len(strides) != dst.ndim:
        raise SimulatorError(f"T.arange: {len(strides)} strides for a tile {list(dst.shape)}")
    values = np.full(dst.shape, int(offset), np.int64)
    for axis, stride in enumerate(strides):
        shape = [-1 if n == axis else 1 for n in range(dst.ndim)]
        values = values + np.arange(dst.shape[axis]).reshape(shape) * int(stride)
    dst[...] = A.cast(values, A.name_of(dst))


@semantics("npuir.concat", reads="srcs", writes="dst")
def concat(A: Any, srcs: Any, dst: Any, dim: int) -> None:
    """Tiles one after the other along an axis."""
    one_type(A, "concat", *srcs, dst)
    _fits("concat", np.concatenate(srcs, axis=dim), dst)


@semantics("npuir.pad", reads="src", writes="dst")
def pad(A: Any, src: Any, dst: Any, pad_value: Any, low: Any, high: Any) -> None:
    """A tile with a value before and behind it; negative lengths cut off."""
    one_type(A, "pad", src, dst)
    shape = tuple(int(b) + n + int(e) for b, n, e in zip(low, src.shape, high, strict=True))
    if dst.shape != shape:
        raise SimulatorError(f"T.pad of {list(src.shape)} into {list(dst.shape)}: {list(shape)} is expected")
    inner, outer = [], []
    for before, after, size in zip(low, high, src.shape, strict=True):
        inner.append(slice(max(-int(before), 0), size - max(-int(after), 0)))
        outer.append(slice(max(int(before), 0), max(int(before), 0) + inner[-1].stop - inner[-1].start))
    values = np.array(src[tuple(inner)])
    dst[...] = A.like(pad_value, dst)
    dst[tuple(outer)] = values


@semantics("npuir.flip", reads="src", writes="dst")
def flip(A: Any, src: Any, dst: Any, axis: int) -> None:
    """An axis backwards."""
    one_type(A, "flip", src, dst)
    _fits("flip", np.array(np.flip(src, axis)), dst)


@semantics("npuir.reshape", reads="src", writes="dst")
def reshape(A: Any, src: Any, dst: Any) -> None:
    """The same elements in another shape."""
    one_type(A, "reshape", src, dst)
    if src.size != dst.size:
        raise SimulatorError(f"T.reshape of {list(src.shape)} to {list(dst.shape)}")
    put(A, "reshape", dst, np.array(src).reshape(dst.shape))
