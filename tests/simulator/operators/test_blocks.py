"""Operators on repeats of 256 bytes and blocks of 32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator

RNG = np.random.default_rng(23)
HALF = RNG.integers(-9, 10, 256).astype(np.float16)
FLOAT = RNG.integers(-9, 10, 192).astype(np.float32)
REDUCE = {"max": np.max, "min": np.min, "sum": np.sum}


@pytest.mark.parametrize("kind", REDUCE)
def test_one_number_for_each_block(call: Any, kind: str) -> None:
    dst = np.zeros(16, np.float16)
    strides = {"dstPepStride": 1, "srcBlkStride": 1, "srcRepStride": 8}
    call(f"tile.block_reduce_{kind}", dst=dst, src=HALF, repeat=2, mask=128, **strides)
    np.testing.assert_array_equal(dst, REDUCE[kind](HALF.reshape(16, 16), axis=1))


def test_blocks_outside_of_the_mask_are_left(call: Any) -> None:
    dst = np.full(8, 50, np.float32)
    strides = {"dstPepStride": 1, "srcBlkStride": 2, "srcRepStride": 0}
    call("tile.block_reduce_sum", dst=dst, src=FLOAT, repeat=1, mask=20, **strides)
    rows = FLOAT.reshape(-1, 8)
    expected = [rows[0].sum(), rows[2].sum(), rows[4, :4].sum(), 50, 50, 50, 50, 50]
    np.testing.assert_array_equal(dst, expected)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_value_and_position_of_each_repeat(call: Any, kind: str) -> None:
    dst = np.zeros(8, np.float16)
    strides = {"dstrepstride": 1, "srcblkstride": 1, "srcrepstride": 4}
    call(f"tile.wholereduce{kind}", dst=dst, src=HALF, mask=64, repeattimes=4, **strides)
    rows = HALF.reshape(4, 64)
    np.testing.assert_array_equal(dst[0::2], REDUCE[kind](rows, axis=1))
    np.testing.assert_array_equal(dst[1::2].view(np.uint16), getattr(np, f"arg{kind}")(rows, axis=1))
    swapped = np.zeros(8, np.float16)
    call(
        f"tile.wholereduce{kind}",
        dst=swapped,
        src=HALF,
        mask=64,
        repeattimes=4,
        ReduceOrder="ORDER_INDEX_VALUE",
        **strides,
    )
    np.testing.assert_array_equal(swapped[1::2], dst[0::2])
    single = np.zeros(4, np.float16)
    arguments = {"mask": 64, "repeattimes": 4, "ReduceOrder": "ORDER_ONLY_VALUE", **strides}
    call(f"tile.wholereduce{kind}", dst=single, src=HALF, **arguments)
    np.testing.assert_array_equal(single, dst[0::2])


def test_sum_of_each_repeat(call: Any) -> None:
    dst = np.zeros(4, np.float32)
    strides = {"dstrepstride": 2, "srcblkstride": 1, "srcrepstride": 8}
    call("tile.wholereducesum", dst=dst, src=FLOAT, mask=10, repeattimes=2, **strides)
    np.testing.assert_array_equal(dst, [FLOAT[:10].sum(), 0, FLOAT[64:74].sum(), 0])
    with pytest.raises(SimulatorError, match="mask 65"):
        call("tile.wholereducesum", dst=dst, src=FLOAT, mask=65, repeattimes=1, **strides)
    with pytest.raises(SimulatorError, match="reads element"):
        call("tile.wholereducesum", dst=dst, src=FLOAT, mask=64, repeattimes=4, **strides)


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


def test_fill_by_mask(call: Any) -> None:
    dst = np.zeros(128, np.float32)
    strides = {"dstBlockStride": 1, "dstRepeatStride": 8}
    call("tile.fill_experiment", dst=dst, value=3.0, mask=(0b101,), repeatTimes=2, **strides)
    assert list(np.flatnonzero(dst)) == [0, 2, 64, 66]
    with pytest.raises(UnsupportedOperator, match="128 bits"):
        call("tile.fill_experiment", dst=np.zeros(128, np.float16), value=3, mask=(1,), repeatTimes=1, **strides)


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


@pytest.mark.parametrize("for_each_block", [False, True])
def test_interpolation(call: Any, for_each_block: bool) -> None:
    source = RNG.integers(-3, 4, 512).astype(np.float16)
    weights = RNG.integers(-3, 4, 32).astype(np.float16)
    blocks = RNG.integers(0, 32, 32)
    dst = np.full(300, 9, np.float16)
    call(
        "tile.bilinear_interpolation",
        dst=dst,
        src0=source,
        src0_offset=(blocks * 32).astype(np.uint32),
        src1=weights,
        mask=120,
        h_repeat=2,
        repeat_mode=for_each_block,
        dst_blk_stride=1,
        v_r_offset=150,
        v_repeat=2,
    )
    expected = np.full(300, 9.0)
    for row in range(2):
        total = np.zeros(128)
        for column in range(2):
            for block in range(8):
                n = (row * 2 + column) * 8 + block
                weight = weights[n if for_each_block else row * 2 + column]
                total[16 * block : 16 * block + 16] += source[16 * blocks[n] :][:16] * float(weight)
        expected[150 * row : 150 * row + 120] = total[:120]
    np.testing.assert_array_equal(dst, expected)
