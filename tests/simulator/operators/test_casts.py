"""``T.tile.cast``: every mode, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError

HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.25, -2.75]
WHOLE = {
    "CAST_RINT": [-2, -2, 0, 0, 2, 2, 2, -3],
    "CAST_FLOOR": [-3, -2, -1, 0, 1, 2, 2, -3],
    "CAST_CEIL": [-2, -1, 0, 1, 2, 3, 3, -2],
    "CAST_ROUND": [-3, -2, -1, 1, 2, 3, 2, -3],
    "CAST_TRUNC": [-2, -1, 0, 0, 1, 2, 2, -2],
}


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("target", [np.int32, np.int16])
def test_float_to_integer(call: Any, mode: str, target: Any) -> None:
    dst = np.full(8, 99, target)
    call("tile.cast", dst=dst, src=np.array(HALVES, np.float32), mode=mode, count=8)
    np.testing.assert_array_equal(dst, WHOLE[mode])


@pytest.mark.parametrize("mode", WHOLE)
def test_a_float_that_stays_one_becomes_whole(call: Any, mode: str) -> None:
    dst = np.zeros(8, np.float32)
    call("tile.cast", dst=dst, src=np.array(HALVES, np.float32), mode=mode, count=8)
    np.testing.assert_array_equal(dst, WHOLE[mode])


STEP = 2.0**-10
"""The distance of float16 numbers between 1 and 2."""
BETWEEN = [1 + 0.25 * STEP, 1 + 0.5 * STEP, 1 + 1.5 * STEP, 1 + 0.75 * STEP, -1 - 0.25 * STEP, -1 - 0.5 * STEP, 1.0]
STEPS = {
    "CAST_NONE": [0, 0, 2, 1, 0, 0, 0],
    "CAST_RINT": [0, 0, 2, 1, 0, 0, 0],
    "CAST_FLOOR": [0, 0, 1, 0, -1, -1, 0],
    "CAST_CEIL": [1, 1, 2, 1, 0, 0, 0],
    "CAST_ROUND": [0, 1, 2, 1, 0, -1, 0],
    "CAST_TRUNC": [0, 0, 1, 0, 0, 0, 0],
    "CAST_ODD": [1, 1, 1, 1, -1, -1, 0],
}


@pytest.mark.parametrize("mode", STEPS)
def test_to_a_narrower_float(call: Any, mode: str) -> None:
    dst = np.zeros(7, np.float16)
    call("tile.cast", dst=dst, src=np.array(BETWEEN, np.float32), mode=mode, count=7)
    signs = np.sign(BETWEEN)
    np.testing.assert_array_equal(dst.astype(np.float64), signs + np.array(STEPS[mode]) * STEP)


def test_to_bfloat16(call: Any) -> None:
    x = np.array([1 + 2.0**-8, 1 + 2.0**-9, -1 - 2.0**-9], np.float32)
    dst = np.zeros(3, ml_dtypes.bfloat16)
    expected = {"CAST_RINT": [1, 1, -1], "CAST_ROUND": [1 + 2.0**-7, 1, -1], "CAST_FLOOR": [1, 1, -1 - 2.0**-7]}
    for mode, values in expected.items():
        call("tile.cast", dst=dst, src=x, mode=mode, count=3)
        np.testing.assert_array_equal(dst.astype(np.float64), values, mode)


def test_widening_keeps_the_value(call: Any) -> None:
    x = np.array([1 + STEP, -3], np.float16)
    dst = np.zeros(2, np.float32)
    call("tile.cast", dst=dst, src=x, mode="CAST_NONE", count=2)
    np.testing.assert_array_equal(dst, x.astype(np.float32))


def test_integers_saturate(call: Any) -> None:
    dst = np.zeros(3, np.int16)
    call("tile.cast", dst=dst, src=np.array([40000, -40000, 5], np.int32), mode="CAST_NONE", count=3)
    np.testing.assert_array_equal(dst, [32767, -32768, 5])
    byte = np.zeros(3, np.uint8)
    call("tile.cast", dst=byte, src=np.array([300.0, -4.0, 7.0], np.float16), mode="CAST_TRUNC", count=3)
    np.testing.assert_array_equal(byte, [255, 0, 7])


def test_the_count_limits_what_is_written(call: Any) -> None:
    dst = np.full((2, 3), 9, np.int32)
    call("tile.cast", dst=dst, src=np.arange(6, dtype=np.float32).reshape(2, 3), mode="CAST_RINT", count=4)
    np.testing.assert_array_equal(dst, [[0, 1, 2], [3, 9, 9]])
    with pytest.raises(SimulatorError, match="out-of-bounds"):
        call("tile.cast", dst=dst, src=np.zeros(8, np.float32), mode="CAST_RINT", count=7)


def test_int32_to_float16_is_scaled_by_a_register(call: Any) -> None:
    x, dst = np.array([3, -5], np.int32), np.zeros(2, np.float16)
    with pytest.raises(SimulatorError, match="set_deq_scale"):
        call("tile.cast", dst=dst, src=x, mode="CAST_NONE", count=2)
    call("set_deq_scale", scale=0.5)
    call("tile.cast", dst=dst, src=x, mode="CAST_NONE", count=2)
    np.testing.assert_array_equal(dst, [1.5, -2.5])


def test_odd_is_for_floats(call: Any) -> None:
    with pytest.raises(SimulatorError, match="CAST_ODD"):
        call("tile.cast", dst=np.zeros(1, np.int32), src=np.zeros(1, np.float32), mode="CAST_ODD", count=1)
    with pytest.raises(SimulatorError, match="CAST_UP"):
        call("tile.cast", dst=np.zeros(1, np.int32), src=np.zeros(1, np.float32), mode="CAST_UP", count=1)


@pytest.mark.parametrize(
    ("source", "target", "mode"),
    [
        (np.float32, np.int8, "CAST_TRUNC"),  # by way of float16 only
        (np.float32, np.int32, "CAST_NONE"),
        (np.uint8, np.float16, "CAST_RINT"),
        (np.int64, np.int32, "CAST_RINT"),
        (np.int32, np.int8, "CAST_NONE"),
        (ml_dtypes.bfloat16, np.float16, "CAST_RINT"),
    ],
)
def test_pairs_and_modes_that_the_instruction_lacks(call: Any, source: Any, target: Any, mode: str) -> None:
    """AscendC's table of ``Cast`` for A2 and A3."""
    with pytest.raises(SimulatorError, match="instruction"):
        call("tile.cast", dst=np.zeros(1, target), src=np.zeros(1, source), mode=mode, count=1)


def test_a_copy_asks_for_a_mode_itself(call: Any) -> None:
    """common.h, copy_ub_to_ub: CAST_RINT for most pairs, which uint8 to float16 does not have."""
    dst = np.zeros(3, np.int32)
    call("copy", src=np.array([1.5, 2.5, -0.7], np.float32), dst=dst)
    np.testing.assert_array_equal(dst, [2, 2, -1])
    with pytest.raises(SimulatorError, match="CAST_RINT: the instruction has CAST_NONE"):
        call("copy", src=np.zeros(3, np.uint8), dst=np.zeros(3, np.float16))
