"""TL171: tiles of three and more axes end with their tensor along every axis, as on a GPU."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

TWICE = "for h, i, j in T.Parallel(4, 8, 8):\n    a[h, i, j] = a[h, i, j] * 2.0\n"
POINTS = f"T.copy(X[bx * 4, 0, 0], a)\n{TWICE}T.copy(a, Y[bx * 4, 0, 0])"
SLICES = f"T.copy(X[bx * 4 : bx * 4 + 4, :, :], a)\n{TWICE}T.copy(a, Y[bx * 4 : bx * 4 + 4, :, :])"
HEADS = "for b in T.serial(2):\n" + textwrap.indent(POINTS.replace("[bx", "[b, bx"), "    ")
FOUR = """
T.copy(X[by * 2, bx * 4, 0, 0], a)
for g, h, i, j in T.Parallel(2, 4, 8, 8):
    a[g, h, i, j] = a[g, h, i, j] * 2.0
T.copy(a, Y[by * 2, bx * 4, 0, 0])
"""
PART = """
T.copy(X[bx * 4, 0, 0], a)
T.copy(a[0:2, :, :], Y[bx * 4, 0, 0])
"""


def file_of(shape: tuple[int, ...], body: str, tile: str = "(4, 8, 8)", grid: str = "3", args: str = "") -> str:
    size = str(shape) if not args else str(shape).replace("9", "n", 1)
    params = f'X: T.Tensor({size}, "float32"), Y: T.Tensor({size}, "float32")'
    blocks = "(bx, by)" if grid == "3, 2" else "bx"
    launch = f"T.Kernel({grid}, threads=128) as {blocks}"
    return gpu_file(params, f'a = T.alloc_fragment({tile}, "float32")\n{body}', launch=launch, args=args)


@pytest.mark.parametrize(
    ("shape", "body", "more"),
    [
        ((9, 8, 8), POINTS, {}),
        ((9, 8, 8), SLICES, {}),
        ((9, 8, 8), POINTS, {"args": "n=9", "grid": "T.ceildiv(n, 4)"}),
        ((2, 9, 8, 8), HEADS, {}),
        ((3, 9, 8, 8), FOUR, {"tile": "(2, 4, 8, 8)", "grid": "3, 2"}),
    ],
)
def test_planes_behind_the_end(shape: tuple[int, ...], body: str, more: dict[str, str]) -> None:
    new = migrated(file_of(shape, body, **more))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, {"X": x}, "factory", (), reading)["Y"], 2 * x)
    assert "in T.serial(4):\n" in new


ROWS = "T.copy(X[0, bx * 4, 0, 0], a)\n" + TWICE + "T.copy(a, Y[0, bx * 4, 0, 0])"


@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize(
    ("shape", "body", "more"),
    [
        ((12, 8, 8), POINTS, {}),
        ((12, 8, 8), SLICES, {}),
        ((12, 8, 8), SLICES.replace("bx * 4 + 4, :, :", "bx * 4 + 4, 0:8, 0:8"), {}),
        ((1, 12, 8, 8), ROWS, {}),
        ((4, 12, 8, 8), FOUR, {"tile": "(2, 4, 8, 8)", "grid": "3, 2"}),
        ((4, 8, 8), "T.copy(X, a)\n" + TWICE + "T.copy(a, Y)", {"grid": "1"}),
    ],
)
def test_every_plane_of_a_tile_is_copied(shape: tuple[int, ...], body: str, more: dict[str, str], threads: str) -> None:
    """The compiler moves two axes of a copy, and of the others the first element."""
    new = migrated(file_of(shape, body, **more), threads)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, {"X": x}, "factory", (), reading)["Y"], 2 * x)
    assert "if " not in new
    assert "T.tile.fill" not in new


def test_a_tile_of_one_plane_is_copied_at_once() -> None:
    result = result_of(file_of((12, 1, 8), POINTS.replace("8, 8)", "1, 8)"), "(4, 1, 8)"))
    assert "TL171" not in {change.code for change in result.changes}


def test_a_size_of_the_launch() -> None:
    """Nobody says that ``n`` is a multiple of 4."""
    text = file_of((9, 8, 8), POINTS, grid="T.ceildiv(n, 4)", args="n=9").replace("factory(n=9):", "factory():")
    text = text.replace("    @T.prim_func", '    n = T.dynamic("n")\n\n    @T.prim_func')
    new = migrated(text)
    assert "if bx * 4 + plane" in new
    assert [d.code for d in result_of(text).diagnostics if d.code == "TL885"] == []


def test_a_part_of_a_tile_is_stored_up_to_the_end() -> None:
    new = migrated(file_of((9, 8, 8), PART))
    assert "T.copy(a[plane, :, :], Y[bx * 4 + plane, 0, 0])" in new


@pytest.mark.parametrize("threads", ["auto", "1"])
def test_columns_behind_the_end_are_zero_in_every_plane(threads: str) -> None:
    """A load that ends with its tensor fills the first plane only."""
    body = """
    a = T.alloc_shared((2, 4, 16), "float32")
    b = T.alloc_shared((2, 8), "float32")
    T.clear(b)
    T.copy(X[0, bx * 4, 0], a)
    for h, i in T.Parallel(2, 4):
        b[h, i] = a[h, i, 15] + a[h, i, 3]
    T.copy(b[0:2, 0:4], Y[0:2, bx * 4 : bx * 4 + 4])
    """
    text = gpu_file('X: T.Tensor((2, 8, 4), "float32"), Y: T.Tensor((2, 8), "float32")', body)
    x = np.random.default_rng(0).standard_normal((2, 8, 4)).astype(np.float32)
    new = migrated(text, threads)
    assert "for plane in T.serial(2):\n                T.copy(X[plane, bx * 4, 0], a[plane, :, :])" in new
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, {"X": x}, "factory", (), reading)["Y"], x[..., 3])
