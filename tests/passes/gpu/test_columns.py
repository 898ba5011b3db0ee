"""TL169: columns of tensors, in one transfer to and from the first column of a wider tile."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

G = np.random.default_rng(4).normal(size=(2, 100, 3)).astype(np.float32)
PARAMS = "G: T.Tensor((2, 100, 3), {0}), Y: T.Tensor((2, 100, 3), {0})"
LAUNCH = "T.Kernel(T.ceildiv(100, M), 2 * 3, threads=128) as (bx, by)"
LOAD = "for i in T.Parallel(M):\n    g[i] = G[by // 3, bx * M + i, by % 3]\n"
STORE = "for i in T.Parallel(M):\n    Y[by // 3, bx * M + i, by % 3] = g[i]\n"
DOUBLE = "for i in T.Parallel(M):\n    g[i] = g[i] + g[i]\n"


def _text(dtype: str, body: str, args: str = "M=32") -> str:
    return gpu_file(PARAMS.format(dtype), f"g = T.alloc_fragment((M,), {dtype})\n{body}", args=args, launch=LAUNCH)


def _agrees(text: str, given: np.ndarray, expected: np.ndarray, threads: str = "auto") -> str:
    """Compares with NumPy in both readings of the simulator; the new text."""
    new = migrated(text, threads)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"G": given}, reading=reading)["Y"]
        np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(expected, np.float64), reading)
    return new


@pytest.mark.parametrize("threads", ["auto", "1"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_column_of_floats_is_summed_from_padded_rows(dtype: str, threads: str) -> None:
    given = np.round(G * 64) / 64  # exact in each of the types, and twice it as well
    new = _agrees(_text(f'"{dtype}"', LOAD + STORE), given, given, threads)
    assert "T.copy(G[by // 3, bx * M : bx * M + M, by % 3 : by % 3 + 1], g_column)" in new
    assert "T.reduce_sum(" in new
    assert "T.copy(y_rows, Y[by // 3, bx * M : bx * M + M, by % 3 : by % 3 + 1])" in new
    assert "T.serial" not in new
    assert ("g_column_wide" in new) == (dtype != "float32")
    assert ("T.copy(y_rows_f32, y_rows)" in new) == (dtype == "bfloat16")  # no instruction spreads a bfloat16


def test_values_beside_the_column_do_not_matter() -> None:
    given = G.copy()
    given[:, :, 1] = np.inf
    given[:, 7, 2] = np.nan
    _agrees(_text('"float32"', LOAD + STORE), given, given)


@pytest.mark.parametrize("threads", ["auto", "1"])
def test_integers_are_taken_one_by_one_from_the_tile(threads: str) -> None:
    given = np.arange(600).reshape(2, 100, 3) * 2**20 + 1  # no float32 holds them
    new = _agrees(_text('"int32"', LOAD + DOUBLE + STORE), given, given * 2, threads)
    assert "g[i] = g_column[i, 0]" in new
    assert "reduce_sum" not in new


def test_a_type_that_only_the_call_gives() -> None:
    """Whatever it is: rows of 32 elements are 32 bytes or more, and zeros are asked for behind the end."""
    new = migrated(_text("dtype", LOAD + STORE, args="dtype, M=32"))
    assert "g_column = T.alloc_shared([M, 32], dtype)" in new
    assert "if bx * M + i" in new
    for dtype in ("float32", "float16", "int16"):
        given = np.round(G * 64) / 64 if dtype.startswith("float") else np.round(G * 64)
        found = run(new, {"G": given}, args=(dtype,))["Y"]
        np.testing.assert_array_equal(np.asarray(found, np.float64), given)


def test_a_parameter_of_the_factory_may_get_a_narrower_type() -> None:
    new = migrated(_text("dtype", LOAD + STORE, args='dtype="float32", M=32'))
    assert "[M, 8]" not in new
    given = np.round(G * 64) / 64
    for dtype in ("float32", "float16"):
        found = run(new, {"G": given}, args=(dtype,))["Y"]
        np.testing.assert_array_equal(np.asarray(found, np.float64), given)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_what_a_load_does_not_fill_stays_single(dtype: str) -> None:
    assert "g_column" not in migrated(_text(f'"{dtype}"', LOAD + STORE))


def test_both_cores_have_all_of_a_column_that_runs_along_the_columns() -> None:
    """TL108: in front of the launch there is no ``T.reduce_sum``, so that the elements are taken one by one."""
    body = LOAD + (
        "a = T.alloc_fragment((M, M), 'float32')\n"
        "for i, j in T.Parallel(M, M):\n    a[i, j] = g[i] - g[j]\n"
        "T.copy(a, Y[by // 3, bx * M : bx * M + M, by % 3, :])\n"
    )
    params = 'G: T.Tensor((2, 100, 3), "float32"), Y: T.Tensor((2, 100, 3, 32), "float32")'
    text = gpu_file(params, "g = T.alloc_fragment((M,), 'float32')\n" + body, args="M=32", launch=LAUNCH)
    new = migrated(text)
    assert "threads=2" in new
    assert new.index("g_column = T.alloc_ub") < new.index("with T.Kernel")
    assert "= g_column[element, 0]" in new
    padded = np.zeros((2, 128, 3))
    padded[:, :100] = G
    tiles = padded.reshape(2, 4, 32, 3)
    expected = (tiles[:, :, :, None, :] - tiles[:, :, None, :, :]).transpose(0, 1, 2, 4, 3).reshape(2, 128, 3, 32)
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, {"G": G}, reading=reading)["Y"], expected[:, :100], 1e-6)


def test_an_axis_with_another_between_it_and_the_last_stays_single() -> None:
    """The compiler counts rows along the last axis but one."""
    params = 'G: T.Tensor((2, 100, 3, 4), "float32"), Y: T.Tensor((2, 100, 3), "float32")'
    load = "for i in T.Parallel(M):\n    g[i] = G[by // 3, bx * M + i, by % 3, 1]\n"
    text = gpu_file(params, "g = T.alloc_fragment((M,), 'float32')\n" + load + STORE, args="M=32", launch=LAUNCH)
    new = migrated(text)
    assert "g_column" not in new
    given = np.repeat(G[..., None], 4, -1) * np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(new, {"G": given})["Y"], G)


def test_stores_under_a_condition_of_their_own_stay_single() -> None:
    store = "for i in T.Parallel(M):\n    if g[i] > 0.0:\n        Y[by // 3, bx * M + i, by % 3] = g[i]\n"
    new = migrated(_text('"float32"', LOAD + store))
    found = run(new, {"G": G})["Y"]
    np.testing.assert_array_equal(found[G > 0], G[G > 0])
    assert np.isnan(found[G <= 0]).all()


@pytest.mark.parametrize("tile", ["(1, M)", "(M, 1)"])
def test_tiles_with_a_unit_axis(tile: str) -> None:
    at = "0, i" if tile == "(1, M)" else "i, 0"
    copy = "T.copy(G[by // 3, bx * M : bx * M + M, by % 3], g)\n" if tile == "(M, 1)" else ""
    load = copy or f"for i in T.Parallel(M):\n    g[{at}] = G[by // 3, bx * M + i, by % 3]\n"
    store = f"for i in T.Parallel(M):\n    Y[by // 3, bx * M + i, by % 3] = g[{at}]\n"
    text = gpu_file(
        PARAMS.format('"float32"'), f"g = T.alloc_shared({tile}, 'float32')\n{load}{store}", args="M=32", launch=LAUNCH
    )
    _agrees(text, G, G)


def test_where_memory_does_not_suffice_elements_stay_single() -> None:
    body = (
        "g = T.alloc_fragment((M,), 'float32')\nbig = T.alloc_fragment((M, 88), 'float32')\n"
        "T.copy(Z[by, bx * M, 0], big)\n"
        f"{LOAD}for i, j in T.Parallel(M, 88):\n    big[i, j] = big[i, j] * g[i]\nT.copy(big, Z[by, bx * M, 0])\n"
    )
    params = 'G: T.Tensor((2, 1024, 3), "float32"), Z: T.Tensor((6, 1024, 88), "float32")'
    launch = "T.Kernel(T.ceildiv(1024, M), 6, threads=128) as (bx, by)"
    few, many = (migrated(gpu_file(params, body, args=f"M={rows}", launch=launch)) for rows in (64, 1024))
    assert "g_column" in few
    assert "g_column" not in many


def test_a_column_whose_length_only_has_a_name() -> None:
    """`min(M, 100)` says nothing of one row: as a copy, its elements would begin as many rows of the tile."""
    slices = "T.copy(G[by // 3, bx * n : (bx + 1) * n, by % 3], g)\n"
    text = _text('"float32"', slices + STORE.replace("* M", "* n"))
    text = text.replace("    @T.prim_func", "    n = min(M, 50)\n\n    @T.prim_func", 1)
    new = _agrees(text, G, G)
    assert "bx * n : (bx + 1) * n, by % 3]" not in new
