"""Operators that move elements by position or by size: progressions, gathers, transposition, sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator

RNG = np.random.default_rng(11)


def test_progressions(call: Any) -> None:
    dst = np.zeros((2, 4), np.int32)
    call("tile.createvecindex", dst=dst, firstValue=5)
    np.testing.assert_array_equal(dst, [[5, 6, 7, 8], [9, 10, 11, 12]])
    half = np.full(6, 7, np.float16)
    call("tile.arith_progression", buffer=half, first_value=1.0, diff_value=-0.5, count=5)
    np.testing.assert_array_equal(half, [1, 0.5, 0, -0.5, -1, 7])


def test_gather_takes_byte_offsets(call: Any) -> None:
    src = np.array([10, 11, 12, 13, 14], np.float32)
    dst = np.full(4, -1, np.float32)
    call("tile.gather", dst=dst, src=src, src_offset=np.array([8, 0, 4], np.uint32), src_base_addr=4)
    np.testing.assert_array_equal(dst, [13, 11, 12, -1])


def test_gather_may_leave_the_region_but_not_the_buffer(call: Any, region: Any) -> None:
    src = np.arange(8, dtype=np.float16).reshape(2, 4)
    dst = np.zeros(2, np.float16)
    arguments = {"src": region(src, (0, 2), (1, 2)), "src_base_addr": 0}
    call("tile.gather", dst=dst, src_offset=np.array([0, 10], np.uint32), **arguments)
    np.testing.assert_array_equal(dst, [2, 7])
    with pytest.raises(SimulatorError, match="reads element 6"):
        call("tile.gather", dst=dst, src_offset=np.array([0, 12], np.uint32), **arguments)
    with pytest.raises(SimulatorError, match="byte offset 3"):
        call("tile.gather", dst=dst, src_offset=np.array([0, 3], np.uint32), **arguments)


PATTERNS = {
    "P0101": [0, 2, 4, 6],
    "P1010": [1, 3, 5, 7],
    "P0001": [0, 4],
    "P0010": [1, 5],
    "P0100": [2, 6],
    "P1000": [3, 7],
    "P1111": list(range(8)),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_fixed_patterns_pack(call: Any, pattern: str) -> None:
    dst = np.full(8, -1, np.int32)
    call("tile.gather_mask", dst=dst, src=np.arange(8, dtype=np.int32), src1Pattern=pattern)
    taken = PATTERNS[pattern]
    np.testing.assert_array_equal(dst, taken + [-1] * (8 - len(taken)))


def test_a_pattern_of_positions(call: Any) -> None:
    dst = np.zeros(3, np.float32)
    src = np.arange(10, 20, dtype=np.float32)
    call("tile.gather_mask", dst=dst, src=src, src1Pattern=np.array([9, 2, 2], np.uint32))
    np.testing.assert_array_equal(dst, [19, 12, 12])
    with pytest.raises(SimulatorError, match="'P0011'"):
        call("tile.gather_mask", dst=dst, src=src, src1Pattern="P0011")
    with pytest.raises(SimulatorError, match="writes elements 0 to 5"):
        call("tile.gather_mask", dst=dst, src=src, src1Pattern="P0101")


@pytest.mark.parametrize("shape", [(16, 16), (32, 48)])
def test_transpose(call: Any, shape: tuple[int, int]) -> None:
    src = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    dst = np.zeros(shape[::-1], np.float32)
    call("tile.transpose", dst=dst, src=src)
    np.testing.assert_array_equal(dst, src.T)
    with pytest.raises(SimulatorError, match="multiples of 16"):
        call("tile.transpose", dst=dst, src=np.zeros((16, 8), np.float32))


def pairs(values: list[float], indices: list[float]) -> list[float]:
    return [x for pair in zip(values, indices, strict=True) for x in pair]


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_sort_gives_values_and_positions(call: Any, kind: Any) -> None:
    src = RNG.permutation(64).astype(kind)
    given = src.copy()
    dst = np.zeros(128, kind)
    call("tile.sort", dst=dst, src=src, actual_num=64)
    order = np.argsort(-given.astype(np.float64), kind="stable")
    np.testing.assert_array_equal(dst, pairs(list(given[order]), [float(n) for n in order]))


def test_sort_keeps_the_order_of_equal_values_and_pads_the_last_block(call: Any) -> None:
    src = np.zeros(64, np.float32)
    src[:3] = [1, 5, 5]
    dst = np.zeros(64, np.float32)
    call("tile.sort", dst=dst, src=src, actual_num=3)
    np.testing.assert_array_equal(dst[:8], [5, 1, 5, 2, 1, 0, -np.inf, 3])
    assert np.isneginf(src[3:32]).all()
    assert not src[32:].any()
    half = np.zeros(32, np.float16)
    call("tile.sort", dst=np.zeros(64, np.float16), src=half, actual_num=3)
    assert not half.any()


def test_topk(call: Any) -> None:
    src = np.array([3, 9, 1, 7, 8, 2], np.float32)
    dst = np.full(16, -1, np.float32)
    call("tile.topk", dst=dst, src=src, K=3, actual_num=5)
    np.testing.assert_array_equal(dst[:6], [9, 1, 8, 4, 7, 3])
    np.testing.assert_array_equal(dst[8:], [-1] * 8)
    with pytest.raises(SimulatorError, match="do not fit"):
        call("tile.topk", dst=dst[:4], src=src, K=3, actual_num=5)


def test_sort32_sorts_blocks(call: Any) -> None:
    src = RNG.permutation(64).astype(np.float32)
    indices = np.arange(100, 164, dtype=np.uint32)
    dst = np.zeros(128, np.float32)
    call("tile.sort32", dst=dst, src0=src, src1=indices)
    for block in (0, 1):
        part = src[32 * block : 32 * block + 32]
        found = dst[64 * block : 64 * block + 64]
        order = np.argsort(-part, kind="stable")
        np.testing.assert_array_equal(found[0::2], part[order])
        np.testing.assert_array_equal(found[1::2].view(np.uint32), indices[32 * block + order])


def test_sort32_of_halves_has_the_index_behind_a_zero(call: Any) -> None:
    src = np.arange(32, dtype=np.float16)
    indices = np.arange(70000, 70032, dtype=np.uint32)
    dst = np.ones(128, np.float16)
    call("tile.sort32", dst=dst, src0=src, src1=indices)
    np.testing.assert_array_equal(dst[0::4], src[::-1])
    assert not dst[1::4].view(np.uint16).any()
    found = np.stack([dst[2::4], dst[3::4]], axis=1)
    np.testing.assert_array_equal(np.ascontiguousarray(found).view(np.uint32).reshape(-1), indices[::-1])


@pytest.mark.parametrize("ways", [2, 3, 4])
def test_merge(call: Any, ways: int) -> None:
    runs = []
    for way in range(ways):
        values = np.sort(RNG.standard_normal(8 + way).astype(np.float32))[::-1]
        runs.append(np.stack([values, np.full(8 + way, way, np.float32)], axis=1).reshape(-1))
    dst = np.zeros(sum(run.size for run in runs), np.float32)
    call("tile.merge_sort", dst=dst, **{f"src{n}": run for n, run in enumerate(runs)})
    everything = sorted(((v, w) for run in runs for v, w in run.reshape(-1, 2)), key=lambda p: -p[0])
    np.testing.assert_array_equal(dst.reshape(-1, 2), everything)


def test_merge_needs_sorted_runs(call: Any) -> None:
    run = np.array([1, 0, 2, 1], np.float32)
    with pytest.raises(SimulatorError, match="descending"):
        call("tile.merge_sort", dst=np.zeros(8, np.float32), src0=run, src1=run[::-1].copy())
    half = np.zeros(8, np.float16)
    with pytest.raises(UnsupportedOperator, match="float16"):
        call("tile.merge_sort", dst=np.zeros(16, np.float16), src0=half, src1=half)
