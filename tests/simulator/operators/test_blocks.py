"""Operators on repeats of 256 bytes and blocks of 32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError

RNG = np.random.default_rng(23)
HALF = RNG.integers(-9, 10, 256).astype(np.float16)
FLOAT = RNG.integers(-9, 10, 192).astype(np.float32)
REDUCE = {"max": np.max, "min": np.min, "sum": np.sum}


def test_each_element_fills_a_block(call: Any) -> None:
    dst = np.zeros((16, 8), np.float32)
    call("tile.brcb_experiment", dst=dst, src=FLOAT, repeat_times=2, dst_blk_stride=1, dst_repeat_stride=8)
    np.testing.assert_array_equal(dst, np.repeat(FLOAT[:16, None], 8, axis=1))
    spread = np.zeros((16, 8), np.float32)
    call("tile.brcb_experiment", dst=spread, src=FLOAT, repeat_times=1, dst_blk_stride=2, dst_repeat_stride=0)
    np.testing.assert_array_equal(spread[::2], np.repeat(FLOAT[:8, None], 8, axis=1))
    assert not spread[1::2].any()


def test_counted_operators(call: Any) -> None:
    dst = np.zeros(8, np.float32)
    call("tile.sub_experiment", dst=dst, src0=FLOAT[:8], src1=FLOAT[8:16], count=5)
    np.testing.assert_array_equal(dst, [*(FLOAT[:5] - FLOAT[8:13]), 0, 0, 0])
    call("tile.abs_experiment", dst=dst, src=FLOAT[:8], count=8)
    np.testing.assert_array_equal(dst, np.abs(FLOAT[:8]))
    call("tile.mins_experiment", dst=dst, src=FLOAT[:8], scalarValue=2, count=8)
    np.testing.assert_array_equal(dst, np.minimum(FLOAT[:8], 2))


def test_sums_of_everything(call: Any) -> None:
    dst = np.zeros(4, np.float32)
    call("tile.reduce_sum_experiment", dst=dst, src=FLOAT, count=100)
    np.testing.assert_array_equal(dst, [FLOAT[:100].sum(), 0, 0, 0])
    call("tile.reduce_sum_mask_experiment", dst=dst, src=FLOAT, mask=1, repeatTime=5, srcRepStride=1)
    assert dst[0] == FLOAT[0:40:8].sum()
    call("tile.sum_experiment", dst=dst, src=FLOAT, sumParams=(3, 16, 11))
    np.testing.assert_array_equal(dst[:3], FLOAT.reshape(-1, 16)[:3, :11].sum(axis=1))
    with pytest.raises(SimulatorError, match="32 bytes"):
        call("tile.sum_experiment", dst=dst, src=FLOAT, sumParams=(3, 12, 11))


def test_gather_by_bits(call: Any) -> None:
    dst = np.full(64, 99, np.float32)
    pattern = np.array([0b10], np.uint32)
    call(
        "tile.gathermask_experiment",
        dst=dst,
        src0=FLOAT,
        src1Pattern=pattern,
        reduceMode=True,
        mask=2,
        GatherMaskParams=(1, 5, 1, 0),
        rsvdCnt=0,
    )
    np.testing.assert_array_equal(dst[:5], FLOAT[1:40:8])
    assert (dst[5:] == 99).all()
    bits = RNG.integers(0, 2**32, 4, dtype=np.uint32)
    dst = np.full(128, 99, np.float32)
    call(
        "tile.gathermask_experiment",
        dst=dst,
        src0=FLOAT,
        src1Pattern=np.concatenate([bits[:2], np.zeros(6, np.uint32), bits[2:]]),
        reduceMode=False,
        mask=0,
        GatherMaskParams=(1, 2, 8, 1),
        rsvdCnt=0,
    )
    chosen = [FLOAT[n] for n in range(128) if int(bits[n // 32]) >> n % 32 & 1]
    np.testing.assert_array_equal(dst[: len(chosen)], chosen)
    assert (dst[len(chosen) :] == 99).all()
