"""Broadcasts, copies, atomic additions, reductions, matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.machine.access import OutOfBounds

GRID = np.arange(24, dtype=np.float32).reshape(4, 6)
ROWS = np.array([1, 2, 3, 4], np.float32)
COLUMNS = np.array([1, 2, 3, 4, 5, 6], np.float32)


@pytest.mark.parametrize(
    ("source", "axis", "expected"),
    [
        (ROWS[:, None], 1, ROWS[:, None] + 0 * GRID),
        (ROWS[:, None], None, ROWS[:, None] + 0 * GRID),
        (ROWS, 1, ROWS[:, None] + 0 * GRID),
        (ROWS, None, ROWS[:, None] + 0 * GRID),
        (COLUMNS[None], 0, COLUMNS + 0 * GRID),
        (COLUMNS[None], None, COLUMNS + 0 * GRID),
        (COLUMNS, 0, COLUMNS + 0 * GRID),
        (COLUMNS, None, COLUMNS + 0 * GRID),
        (GRID, None, GRID),
    ],
)
def test_broadcast(call: Any, source: np.ndarray, axis: int | None, expected: np.ndarray) -> None:
    dst = np.zeros((4, 6), np.float32)
    call("tile.broadcast", dst=dst, src=source, axis=axis)
    np.testing.assert_array_equal(dst, expected)


def test_a_flat_source_of_a_square_goes_to_the_columns_first(call: Any) -> None:
    dst = np.zeros((4, 4), np.float32)
    call("tile.broadcast", dst=dst, src=ROWS)
    np.testing.assert_array_equal(dst, np.tile(ROWS, (4, 1)))


@pytest.mark.parametrize(("source", "axis"), [(ROWS, 0), (COLUMNS, 1), (ROWS[:, None], 0), (GRID[:2], 1)])
def test_what_cannot_be_spread(call: Any, source: np.ndarray, axis: int) -> None:
    with pytest.raises(SimulatorError, match="cannot be spread"):
        call("tile.broadcast", dst=np.zeros((4, 6), np.float32), src=source, axis=axis)


def test_broadcast_of_the_last_two_axes(call: Any, region: Any) -> None:
    dst = np.zeros((2, 4, 6), np.float32)
    call("tile.broadcast", dst=region(dst, (1, 0, 0), (1, 4, 6)), src=ROWS, axis=1)
    np.testing.assert_array_equal(dst[1], ROWS[:, None] + 0 * GRID)
    assert not dst[0].any()
    with pytest.raises(SimulatorError, match="two axes"):
        call("tile.broadcast", dst=dst, src=ROWS, axis=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("row_expand_mul", GRID * ROWS[:, None]),
        ("row_expand_mul_experiment", GRID * ROWS[:, None]),
        ("row_expand_sub_experiment", GRID - ROWS[:, None]),
        ("row_expand_div_experiment", GRID / ROWS[:, None]),
    ],
)
@pytest.mark.parametrize("shape", [(4,), (1, 4), (4, 1)])
def test_one_number_for_each_row(call: Any, name: str, expected: np.ndarray, shape: tuple[int, ...]) -> None:
    dst = np.zeros((4, 6), np.float32)
    call(f"tile.{name}", dst=dst, src0=GRID, src1=ROWS.reshape(shape))
    np.testing.assert_array_equal(dst, expected)
    with pytest.raises(SimulatorError, match="4 rows"):
        call(f"tile.{name}", dst=dst, src0=GRID, src1=COLUMNS)


def test_one_block_for_each_row(call: Any) -> None:
    dst = np.zeros((2, 16), np.float32)
    left, right = np.arange(32, dtype=np.float32).reshape(2, 16), np.arange(16, dtype=np.float32).reshape(2, 8)
    call("tile.row_expand_mul_experiment", dst=dst, src0=left, src1=right)
    np.testing.assert_array_equal(dst, left * np.tile(right, (1, 2)))


def test_columns_of_a_wider_buffer(call: Any, region: Any) -> None:
    dst = np.zeros((4, 12), np.float32)
    call("tile.row_expand_mul_experiment", dst=region(dst, (0, 6), (4, 6)), src0=GRID, src1=ROWS)
    np.testing.assert_array_equal(dst[:, 6:], GRID * ROWS[:, None])
    assert not dst[:, :6].any()


# copies


def test_a_start_index_takes_the_extents_of_the_other_side(call: Any, region: Any) -> None:
    tensor, tile = GRID.copy(), np.zeros((2, 3), np.float32)
    call("copy", src=region(tensor, (1, 2), memory="global"), dst=tile)
    np.testing.assert_array_equal(tile, GRID[1:3, 2:5])
    call("copy", src=tile, dst=region(tensor, (0, 0), memory="global"))
    np.testing.assert_array_equal(tensor[:2, :3], GRID[1:3, 2:5])


def test_what_lies_outside_is_padded_and_not_written(call: Any, region: Any) -> None:
    tensor, tile = GRID.copy(), np.full((3, 4), 9, np.float32)
    call("copy", src=region(tensor, (3, 4), memory="global"), dst=tile, pad_value=-1.0)
    np.testing.assert_array_equal(tile, [[22, 23, -1, -1], [-1] * 4, [-1] * 4])
    call("copy", src=np.full((3, 4), 5, np.float32), dst=region(tensor, (3, 4), memory="global"))
    assert (tensor[3, 4:] == 5).all()
    assert (tensor[:3] == GRID[:3]).all()
    assert (tensor[3, :4] == GRID[3, :4]).all()


def test_a_tile_of_three_axes_is_padded_along_the_last_two(call: Any, region: Any) -> None:
    tensor, tile = np.arange(1, 9, dtype=np.float32).reshape(2, 1, 4), np.full((3, 1, 4), 9, np.float32)
    call("copy", src=region(tensor, (1, 0, 0), (3, 1, 4), memory="global"), dst=tile)
    np.testing.assert_array_equal(tile[:, 0], [[5, 6, 7, 8], [9] * 4, [9] * 4])
    call("copy", src=region(tensor, (2, 0, 0), (3, 1, 4), memory="global"), dst=tile)
    np.testing.assert_array_equal(tile[:, 0], [[0] * 4, [9] * 4, [9] * 4])


def test_a_load_from_behind_the_tensor_pads_everything_in_ub_only(call: Any, region: Any) -> None:
    tile = np.full((2, 6), 9, np.float32)
    call("copy", src=region(GRID, (4, 0), memory="global"), dst=tile)
    assert not tile.any()
    with pytest.raises(OutOfBounds):
        call("copy", src=region(GRID, (4, 0), memory="global"), dst=region(tile, (0, 0), (2, 6), "l1"))
    with pytest.raises(OutOfBounds):
        call("copy", src=region(GRID, (-1, 0), memory="global"), dst=tile)


def test_only_the_last_two_axes_longer_than_one_end_with_the_tensor(call: Any, region: Any) -> None:
    tensor, row = np.arange(24, dtype=np.float32).reshape(2, 2, 6), np.full((1, 6), 9, np.float32)
    call("copy", src=region(tensor, (1, 2, 0), (1, 1, 6), memory="global"), dst=row)
    assert not row.any()
    with pytest.raises(OutOfBounds):
        call("copy", src=region(tensor, (2, 0, 0), (1, 1, 6), memory="global"), dst=row)
    with pytest.raises(OutOfBounds):
        call("copy", src=row, dst=region(tensor, (2, 0, 0), (1, 1, 6), memory="global"))
    block = np.zeros((3, 1, 6), np.float32)
    call("copy", src=region(tensor, (1, 0, 0), (3, 1, 6), memory="global"), dst=block)  # rows of the first axis
    np.testing.assert_array_equal(block[0, 0], tensor[1, 0])
    with pytest.raises(OutOfBounds):
        call("copy", src=region(tensor, (1, 0, 0), (2, 2, 6), memory="global"), dst=np.zeros((2, 2, 6), np.float32))


def test_relu_and_conversion_on_the_way(call: Any, region: Any) -> None:
    accumulator = np.array([[-1.5, 2049.0], [1.0, -0.0]], np.float32)
    tensor = np.zeros((2, 2), np.float16)
    call(
        "copy",
        src=region(accumulator, (0, 0), (2, 2), "l0c"),
        dst=region(tensor, (0, 0), memory="global"),
        enable_relu=True,
    )
    np.testing.assert_array_equal(tensor, [[0, 2048], [1, 0]])


def test_conversion_between_tiles_rounds_to_even_and_saturates(call: Any) -> None:
    dst = np.zeros(4, np.int8)
    call("copy", src=np.array([2.5, 3.5, -300, 127.4], np.float16), dst=dst)
    np.testing.assert_array_equal(dst, [2, 4, -128, 127])


def test_transposing_copy(call: Any, region: Any) -> None:
    dst = np.zeros((6, 4), np.float32)
    call("copy", src=region(GRID, (0, 0), (4, 6), "l1"), dst=region(dst, (0, 0), (6, 4), "l0b"), transpose=True)
    np.testing.assert_array_equal(dst, GRID.T)


def test_tiles_of_other_extents(call: Any) -> None:
    with pytest.raises(SimulatorError, match="the extents do not agree"):
        call("copy", src=np.zeros((4, 6), np.float32), dst=np.zeros((4, 5), np.float32))


@pytest.mark.parametrize("memory", ["ub", "l0c"])
def test_a_store_to_more_than_the_tile(call: Any, region: Any, memory: str) -> None:
    """The instruction counts the rows and columns that the tensor has (``validRow``) and reads on behind the tile."""
    tensor = np.zeros((6, 6), np.float32)
    tile = np.ones((3, 4), np.float32)
    for extents in ((4, 4), (3, 5)):
        with pytest.raises(SimulatorError, match="the extents do not agree"):
            call("copy", src=region(tile, (0, 0), (3, 4), memory), dst=region(tensor, (1, 0), extents, "global"))
    call("copy", src=region(tile, (0, 0), (3, 4), memory), dst=region(tensor, (3, 2), (4, 5), "global"))
    assert tensor.sum() == 12
    assert (tensor[3:, 2:] == 1).all()


@pytest.mark.parametrize("memory", ["ub", "l1"])
def test_between_global_memory_and_the_chip_nothing_is_converted(call: Any, region: Any, memory: str) -> None:
    half, single = np.ones((2, 4), np.float16), np.zeros((2, 4), np.float32)
    with pytest.raises(SimulatorError, match=r"float16.*float32.*between global memory and the chip"):
        call("copy", src=region(half, (0, 0), memory="global"), dst=region(single, (0, 0), (2, 4), memory))
    if memory == "ub":
        with pytest.raises(SimulatorError, match="between global memory and the chip"):
            call("copy", src=region(half, (0, 0), (2, 4), memory), dst=region(single, (0, 0), memory="global"))
    call("copy", src=region(half, (0, 0), (2, 4), "l0c"), dst=region(single, (0, 0), memory="global"))
    assert (single == 1).all()


# atomic additions


@pytest.mark.parametrize("memory", ["ub", "l0c"])
def test_atomic_addition(call: Any, region: Any, memory: str) -> None:
    tensor = GRID.copy()
    tile = np.ones((3, 4), np.float32)
    call(
        "tile.atomic_add",
        dst=region(tensor, (2, 1), memory="global"),
        src=region(tile, (0, 0), (3, 4), memory),
    )
    expected = GRID.copy()
    expected[2:, 1:5] += 1
    np.testing.assert_array_equal(tensor, expected)


def test_atomic_addition_is_from_the_chip_to_global_memory(call: Any, region: Any) -> None:
    with pytest.raises(SimulatorError, match="adds on-chip memory to global memory"):
        call("tile.atomic_add", dst=GRID.copy(), src=GRID)
    with pytest.raises(SimulatorError, match="element types"):
        call("tile.atomic_add", dst=region(GRID.astype(np.float16), (0, 0), memory="global"), src=GRID)


# reductions


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_reductions(call: Any, kind: str, dim: int) -> None:
    expected = getattr(np, kind)(GRID, axis=dim)
    for shape in (expected.shape, np.expand_dims(expected, dim).shape):
        out = np.zeros(shape, np.float32)
        call(f"reduce_{kind}", buffer=GRID, out=out, dim=dim)
        np.testing.assert_array_equal(out.reshape(-1), expected)


def test_reductions_count_indexed_axes(call: Any, region: Any) -> None:
    tile = np.stack([GRID, -GRID])
    out = np.zeros(6, np.float32)
    call("reduce_max", buffer=region(tile, (1, 0, 0), (1, 4, 6)), out=out, dim=0)
    np.testing.assert_array_equal(out, (-GRID).max(axis=0))
    row = np.zeros(1, np.float32)
    call("reduce_sum", buffer=region(GRID, (2, 0), (1, 6)), out=row, dim=-1)
    assert row[0] == GRID[2].sum()
    with pytest.raises(SimulatorError, match="two axes"):
        call("reduce_sum", buffer=tile, out=out, dim=0)


def test_old_results_take_part(call: Any) -> None:
    out = np.array([100, 0, 0, 0], np.float32)
    call("reduce_max", buffer=GRID, out=out, dim=-1, clear=False)
    np.testing.assert_array_equal(out, [100, 11, 17, 23])
    call("reduce", buffer=GRID, out=out, reduce_type="reduce_sum", dim=-1, clear=False)
    np.testing.assert_array_equal(out, [115, 62, 104, 146])


def test_only_a_part_is_real(call: Any) -> None:
    out = np.full((1, 6), 9, np.float32)
    call("reduce_max", buffer=GRID, out=out, dim=-1, real_shape=(3, 2))
    np.testing.assert_array_equal(out, [[1, 7, 13, 9, 9, 9]])
    call("reduce_sum", buffer=GRID, out=out, dim=0, real_shape=(2, 0))
    np.testing.assert_array_equal(out, [GRID[:2].sum(axis=0)])
    with pytest.raises(SimulatorError, match="into"):
        call("reduce_max", buffer=GRID, out=out, dim=-1)


# matrix products


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_products(call: Any, left: bool, right: bool) -> None:
    a, b = GRID.astype(np.float16), (GRID[:, :5].T - 7).astype(np.float16)[:, :4]
    b = np.concatenate([b, b[:1]])
    expected = a.astype(np.float32) @ b.astype(np.float32)
    c = np.ones((4, 4), np.float32)
    operands = {"A": a.T if left else a, "B": b.T if right else b, "C": c}
    call("gemm_v0", **operands, transpose_A=left, transpose_B=right)
    np.testing.assert_array_equal(c, expected + 1)
    call("gemm_v0", **operands, transpose_A=left, transpose_B=right, init=True)
    np.testing.assert_array_equal(c, expected)


def test_products_of_other_shapes(call: Any) -> None:
    wide, tall = np.zeros((4, 6), np.float16), np.zeros((6, 4), np.float16)
    for c in (np.zeros((1, 4), np.float32), np.zeros((4, 3), np.float32)):
        with pytest.raises(SimulatorError, match=r"\[4, 6\] and \[6, 4\]"):
            call("gemm_v0", A=wide, B=tall, C=c, init=True)
    with pytest.raises(SimulatorError, match=r"\[4, 6\] and \[4, 6\]"):
        call("mma", A=wide, B=wide, C=np.zeros((4, 6), np.float32), init=True)
    with pytest.raises(SimulatorError, match="not in float16"):
        call("gemm_v0", A=wide, B=tall, C=np.zeros((4, 4), np.float16), init=True)


def test_a_load_of_a_part_of_l1_clears_the_tile_where_it_begins(call: Any, region: Any) -> None:
    """The first of several loads into one tile clears it, the others do not (common.h:57-73)."""
    tile = np.full((2, 4, 6), 9, np.float32)
    call("copy", src=region(GRID, (0, 0), (2, 6), "global"), dst=region(tile, (0, 0, 0), (1, 2, 6), "l1"))
    call("copy", src=region(GRID, (3, 0), (1, 6), "global"), dst=region(tile, (0, 3, 0), (1, 1, 6), "l1"))
    np.testing.assert_array_equal(tile[0], [*GRID[:2], [0] * 6, GRID[3]])
    assert (tile[1] == 9).all()
    call("copy", src=region(GRID, (2, 0), (4, 6), "global"), dst=region(tile, (1, 0, 0), (1, 4, 6), "l1"))
    np.testing.assert_array_equal(tile[1], [GRID[2], GRID[3], [9] * 6, [9] * 6])


@pytest.mark.parametrize(
    ("dtype", "columns", "rows"), [("int8", 64, 2), ("uint8", 64, 2), ("int64", 40, 2), ("int16", 96, 4)]
)
def test_what_a_load_fills_behind_the_end(call: Any, region: Any, dtype: str, columns: int, rows: int) -> None:
    """All of the tile with 16 and 32 bits, else the last 32 bytes of the rows that it reaches (common.h:199-225)."""
    tensor, tile = np.ones((2, 40), dtype), np.full((4, 96), 7, dtype)
    call("copy", src=region(tensor, (0, 0), (4, 96), "global"), dst=tile)
    assert (tile[:2, :40] == 1).all()
    assert (tile[:rows, 40:columns] == 0).all()
    assert (tile[:, columns:] == 7).all()
    assert (tile[rows:] == 7).all()
