"""Bit masks: ``T.tile.compare`` and ``T.tile.select``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError

RNG = np.random.default_rng(5)
LEFT = RNG.integers(-3, 4, 128).astype(np.float32)
RIGHT = RNG.integers(-3, 4, 128).astype(np.float32)
MODES = {
    "EQ": LEFT == RIGHT,
    "NE": LEFT != RIGHT,
    "GT": LEFT > RIGHT,
    "GE": LEFT >= RIGHT,
    "LT": LEFT < RIGHT,
    "LE": LEFT <= RIGHT,
}


def packed(bits: np.ndarray) -> list[int]:
    """Bytes, the first element in the lowest bit."""
    return [sum(int(b) << n for n, b in enumerate(bits[i : i + 8])) for i in range(0, len(bits), 8)]


@pytest.mark.parametrize("mode", MODES)
def test_one_bit_for_each_element(call: Any, mode: str) -> None:
    dst = np.full(20, 255, np.uint8)
    call("tile.compare", dst=dst, src0=LEFT.reshape(2, 64), src1=RIGHT, mode=mode)
    assert list(dst) == [*packed(MODES[mode]), 255, 255, 255, 255]


def test_a_number_on_the_right(call: Any) -> None:
    dst = np.zeros(16, np.uint8)
    call("tile.compare", dst=dst, src0=LEFT, src1=1.0, mode="GE")
    assert list(dst) == packed(LEFT >= 1)


def test_an_element_on_the_right(call: Any, region: Any) -> None:
    dst = np.zeros(16, np.uint8)
    scalars = np.array([9.0, 1.0], np.float32)
    call("tile.compare", dst=dst, src0=LEFT, src1=region(scalars, (1,)), mode="LT")
    assert list(dst) == packed(LEFT < 1)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32])
def test_masks_of_other_types_hold_the_same_bytes(call: Any, kind: Any) -> None:
    dst = np.zeros(16 // np.dtype(kind).itemsize, kind)
    call("tile.compare", dst=dst, src0=LEFT, src1=RIGHT, mode="LT")
    assert list(dst.view(np.uint8)) == packed(LEFT < RIGHT)


def test_multiples_of_256_bytes_only(call: Any) -> None:
    with pytest.raises(SimulatorError, match="256 bytes"):
        call("tile.compare", dst=np.zeros(16, np.uint8), src0=LEFT[:32], src1=0.0, mode="LT")
    half = LEFT.astype(np.float16)
    call("tile.compare", dst=np.zeros(16, np.uint8), src0=half, src1=0.0, mode="LT")


def test_a_mask_that_is_too_small(call: Any) -> None:
    with pytest.raises(SimulatorError, match="16 bytes does not fit"):
        call("tile.compare", dst=np.zeros(15, np.uint8), src0=LEFT, src1=0.0, mode="LT")


CHOSEN = RNG.integers(0, 2, 128).astype(bool)
MASK = np.array(packed(CHOSEN), np.uint8)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_select_between_two_tiles(call: Any, kind: Any) -> None:
    dst = np.zeros((2, 64), kind)
    yes, no = LEFT.reshape(2, 64).astype(kind), RIGHT.astype(kind)
    call("tile.select", dst=dst, selMask=MASK, src0=yes, src1=no, selMode="VSEL_TENSOR_TENSOR_MODE")
    np.testing.assert_array_equal(dst, np.where(CHOSEN, LEFT, RIGHT).reshape(2, 64).astype(kind))


def test_select_with_a_number(call: Any) -> None:
    dst = np.zeros(128, np.float32)
    call("tile.select", dst=dst, selMask=MASK, src0=LEFT, src1=-np.inf, selMode="VSEL_TENSOR_SCALAR_MODE")
    np.testing.assert_array_equal(dst, np.where(CHOSEN, LEFT, -np.inf))


def test_the_register_mask_repeats(call: Any) -> None:
    dst = np.zeros(128, np.float32)
    call("tile.select", dst=dst, selMask=MASK, src0=LEFT, src1=RIGHT, selMode="VSEL_CMPMASK_SPR")
    np.testing.assert_array_equal(dst, np.where(np.tile(CHOSEN[:64], 2), LEFT, RIGHT))
    half = np.zeros(128, np.float16)
    arguments = {"src0": LEFT.astype(np.float16), "src1": RIGHT.astype(np.float16)}
    call("tile.select", dst=half, selMask=MASK, **arguments, selMode="VSEL_CMPMASK_SPR")
    np.testing.assert_array_equal(half, np.where(CHOSEN, LEFT, RIGHT))


def test_modes_and_operands_have_to_agree(call: Any) -> None:
    dst = np.zeros(128, np.float32)
    with pytest.raises(SimulatorError, match="a number as src1"):
        call("tile.select", dst=dst, selMask=MASK, src0=LEFT, src1=0.0, selMode="VSEL_TENSOR_TENSOR_MODE")
    with pytest.raises(SimulatorError, match="a tile as src1"):
        call("tile.select", dst=dst, selMask=MASK, src0=LEFT, src1=RIGHT, selMode="VSEL_TENSOR_SCALAR_MODE")
    with pytest.raises(SimulatorError, match="120 bits for 128"):
        call("tile.select", dst=dst, selMask=MASK[:15], src0=LEFT, src1=RIGHT, selMode="VSEL_TENSOR_TENSOR_MODE")


def test_compare_then_select_is_a_where(call: Any) -> None:
    mask, dst = np.zeros(16, np.uint8), np.zeros(128, np.float32)
    call("tile.compare", dst=mask, src0=LEFT, src1=RIGHT, mode="GT")
    call("tile.select", dst=dst, selMask=mask, src0=LEFT, src1=RIGHT, selMode="VSEL_TENSOR_TENSOR_MODE")
    np.testing.assert_array_equal(dst, np.maximum(LEFT, RIGHT))
