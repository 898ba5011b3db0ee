"""``T.tile`` operators on repeats: 256 bytes in eight blocks of 32, with strides between blocks and between repeats.

Strides count blocks unless said otherwise. ``mask`` is the number of elements of each repeat that take part, the
first ones. They address flat memory from where their operands begin. Source: tl_templates/ascend/common.h, and the
instructions' rules in the field's tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import from_here, itemsize, number, put_at, same_type, span, take

_BLOCK = 32
_BLOCKS = 8


def repeats(name: str, operand: Any, count: Any, block_stride: Any, repeat_stride: Any, mask: Any) -> Any:
    """The first ``mask`` elements of each repeat, ``[count, mask]``."""
    each = _BLOCK // itemsize(operand)
    taking = int(mask)
    if not 0 < taking <= _BLOCKS * each:
        raise SimulatorError(f"T.tile.{name}: mask {taking}, but a repeat has {_BLOCKS * each} elements")
    return take(name, from_here(operand, "r"), positions(each, count, block_stride, repeat_stride)[:, :taking])


def positions(each: int, count: Any, block_stride: Any, repeat_stride: Any) -> np.ndarray:
    """The positions of the elements of all repeats, ``[count, 8 * each]``; ``each`` elements make a block."""
    repeat = np.arange(int(count))[:, None, None] * int(repeat_stride)
    block = np.arange(_BLOCKS)[None, :, None] * int(block_stride)
    flat: np.ndarray = ((repeat + block) * each + np.arange(each)).reshape(int(count), _BLOCKS * each)
    return flat


@semantics("tile.brcb_experiment", reads="src", writes="dst", raw=True)
def brcb(A: Any, dst: Any, src: Any, repeat_times: Any, dst_blk_stride: Any, dst_repeat_stride: Any) -> None:
    """Each of ``8 * repeat_times`` elements fills one block."""
    each = _BLOCK // itemsize(dst)
    values = take("brcb_experiment", from_here(src, "r"), np.arange(int(repeat_times) * _BLOCKS))
    target = from_here(dst, "w")
    same_type("brcb_experiment", values, target)
    at = positions(each, repeat_times, dst_blk_stride, dst_repeat_stride)
    put_at("brcb_experiment", target, at, np.repeat(values, each))


@semantics("tile.sub_experiment", reads="src0 src1", writes="dst", raw=True)
def sub(A: Any, dst: Any, src0: Any, src1: Any, count: Any) -> None:
    """The first ``count`` elements of ``src0 - src1``."""
    target, left, right = (span("sub_experiment", o, count, k) for o, k in ((dst, "w"), (src0, "r"), (src1, "r")))
    for side in (left, right):
        same_type("sub_experiment", side, target)
    target[...] = A.sub(left, right)


@semantics("tile.abs_experiment", reads="src", writes="dst", raw=True)
def absolute(A: Any, dst: Any, src: Any, count: Any) -> None:
    """The magnitudes of the first ``count`` elements."""
    target, source = span("abs_experiment", dst, count, "w"), span("abs_experiment", src, count, "r")
    same_type("abs_experiment", source, target)
    target[...] = A.absolute(source)


@semantics("tile.mins_experiment", reads="src", writes="dst", raw=True)
def mins(A: Any, dst: Any, src: Any, scalarValue: Any, count: Any) -> None:
    """The first ``count`` elements, none larger than a number."""
    target, source = span("mins_experiment", dst, count, "w"), span("mins_experiment", src, count, "r")
    same_type("mins_experiment", source, target)
    target[...] = A.minimum(source, A.like(number(scalarValue), source))


@semantics("tile.reduce_sum_experiment", reads="src", writes="dst", raw=True)
def reduce_sum(A: Any, dst: Any, src: Any, count: Any) -> None:
    """``dst[0]`` is the sum of the first ``count`` elements."""
    source, target = span("reduce_sum_experiment", src, count, "r"), from_here(dst, "w")
    same_type("reduce_sum_experiment", source, target)
    put_at("reduce_sum_experiment", target, [0], A.sum(source, 0))


@semantics("tile.reduce_sum_mask_experiment", reads="src", writes="dst", raw=True)
def reduce_sum_mask(A: Any, dst: Any, src: Any, mask: Any, repeatTime: Any, srcRepStride: Any) -> None:
    """``dst[0]`` is the sum over all repeats of their first ``mask`` elements."""
    values, target = repeats("reduce_sum_mask_experiment", src, repeatTime, 1, srcRepStride, mask), from_here(dst, "w")
    same_type("reduce_sum_mask_experiment", values, target)
    put_at("reduce_sum_mask_experiment", target, [0], A.sum(values.reshape(-1), 0))


@semantics("tile.sum_experiment", reads="src", writes="dst", raw=True)
def sum_rows(A: Any, dst: Any, src: Any, sumParams: Any) -> None:
    """``sumParams`` are rows, padded row length and real row length: the sum of each row's real part."""
    rows, padded, real = (int(n) for n in sumParams)
    if not 0 <= real <= padded or padded * itemsize(src) % _BLOCK:
        raise SimulatorError(
            f"T.tile.sum_experiment: a row of {real} elements padded to {padded}, not a multiple of 32 bytes"
        )
    flat, target = from_here(src, "r"), from_here(dst, "w")
    same_type("sum_experiment", flat, target)
    at = np.arange(rows)[:, None] * padded + np.arange(real)
    put_at("sum_experiment", target, np.arange(rows), A.sum(take("sum_experiment", flat, at), 1))


@semantics("tile.gathermask_experiment", reads="src0 src1Pattern", writes="dst", raw=True)
def gathermask(
    A: Any, dst: Any, src0: Any, src1Pattern: Any, reduceMode: bool, mask: Any, GatherMaskParams: Any, rsvdCnt: Any
) -> None:
    """The elements whose bit in the pattern is one, packed.

    ``GatherMaskParams`` are the stride between blocks of ``src0``, the repeats, and the strides between repeats of
    ``src0`` and of the pattern. ``reduceMode`` False: whole repeats; True: the first ``mask`` elements of each.
    """
    block_stride, count, repeat_stride, pattern_stride = (int(n) for n in GatherMaskParams)
    each = _BLOCK // itemsize(src0)
    taking = int(mask) if reduceMode else each * _BLOCKS
    values = repeats("gathermask_experiment", src0, count, block_stride, repeat_stride, taking)
    data = np.ascontiguousarray(from_here(src1Pattern, "r")).view(np.uint8)
    bits = np.unpackbits(data, bitorder="little").astype(bool)
    at = np.arange(count)[:, None] * pattern_stride * _BLOCK * 8 + np.arange(taking)
    chosen = values[take("gathermask_experiment", bits, at)]
    target = from_here(dst, "w")
    same_type("gathermask_experiment", values, target)
    put_at("gathermask_experiment", target, np.arange(chosen.size), chosen)


@semantics("tile.datacachecleanandinvalid_experiment", reads="dst", raw=True)
def clean_cache(A: Any, dst: Any, CacheLine: str, DcciDst: str) -> None:
    """Cleans the data cache: memory here has no cache in front of it."""
