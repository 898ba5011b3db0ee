"""Atomic additions for AscendNPU IR: slices, rows through an index, groups of two and four elements."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file
from tests.passes.npuir.test_from_gpu import LAUNCH, agree, refused

RNG = np.random.default_rng(5)
PARAMS = (
    'A: T.Tensor((64, 32), "float32"), I: T.Tensor((64,), "int32"), C: T.Tensor((40, 2, 48), "float32"), '
    'W: T.Tensor((32, 32), "float32")'
)
INPUTS = {
    "A": RNG.standard_normal((64, 32)).astype(np.float32),
    "I": RNG.integers(0, 40, 64).astype(np.int32),  # rows occur more than once
    "C": RNG.standard_normal((40, 2, 48)).astype(np.float32),
    "W": np.zeros((32, 32), np.float32),
}
TILE = 'x = T.alloc_fragment((32, 32), "float32")\nT.copy(A[bx * 32, 0], x)\n'
ROWS = "for i in T.serial(32):\n"


def migrated(body: str, tile: str = TILE) -> str:
    return agree(gpu_file(PARAMS, tile + body, launch=LAUNCH), INPUTS)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.Parallel(32, 32):\n    T.atomic_add(C[I[bx * 32 + i], bx, 16 + j], x[i, j])",
        "for r, c in T.Parallel(32, 32):\n    row = I[bx * 32 + r]\n    T.atomic_add(C[row, bx, c + 16], x[r, c])",
        "for i, g in T.Parallel(32, 32 // 4):\n    T.atomic_addx4(C[I[bx * 32 + i], bx, 16 + g * 4], x[i, g * 4])",
        "for i, g in T.Parallel(32, 8):\n    T.atomic_addx4(C[I[bx * 32 + i], bx, 4 * g + 16], x[i, 4 * g])",
        "for i, g in T.Parallel(32, 16):\n    T.atomic_addx2(C[I[bx * 32 + i], bx, 16 + g * 2], x[i, g * 2])",
    ],
)
def test_rows_are_added_through_an_index(body: str) -> None:
    new = flat(migrated(body))
    assert "in T.serial(32): T.atomic_add(C[I[bx * 32 + " in new or "row = I[bx * 32 + r] T.atomic_add(C[row," in new
    assert ", bx, 16 : 16 + 32], x[" in new
    assert "addx" not in new


def test_a_condition_asks_about_each_row() -> None:
    body = """
for i, j in T.Parallel(32, 32):
    row = I[bx * 32 + i]
    if (row > 3) & (row < 30):
        T.atomic_add(C[row, 0, j], x[i, j])
"""
    new = flat(migrated(body))
    assert (
        "for i in T.serial(32): row = I[bx * 32 + i] if (row > 3) & (row < 30): T.atomic_add(C[row, 0, 0:32], x[i, :])"
        in new
    )


def test_each_addition_of_a_loop_gets_a_statement() -> None:
    body = """
for i, j in T.Parallel(32, 32):
    T.atomic_add(W[i, j], x[i, j])
    T.atomic_add(C[I[bx * 32 + i], 1, j], x[i, j])
"""
    new = flat(migrated(body))
    assert "T.atomic_add(W[:, :], x) for i in T.serial(32): T.atomic_add(C[" in new


def test_groups_need_not_be_rows() -> None:
    body = "for i, g in T.Parallel(32, 8):\n    T.atomic_addx4(W[i, g * 4], x[i, g * 4])\n"
    assert "T.atomic_add(W[:, :], x)" in migrated(body)
    part = "for i, g in T.Parallel(16, 4):\n    T.atomic_addx4(W[i + 8, g * 4 + 8], x[i, g * 4])\n"
    assert "T.atomic_add(W[8 : 8 + 16, 8 : 8 + 16], x[0:16, 0:16])" in migrated(part)


def test_the_groups_of_a_size_that_callers_give() -> None:
    params = 'A: T.Tensor((32, D), "float32"), C: T.Tensor((32, D), "float32")'
    body = """
x = T.alloc_shared((32, D), "float32")
T.copy(A, x)
for i, g in T.Parallel(32, D // 4):
    T.atomic_addx4(C[i, g * 4], x[i, g * 4])
for i, g in T.Parallel(32, D // 8):
    T.atomic_addx4(C[i, g * 4], x[i, g * 4])
"""
    text = gpu_file(params, body).replace("def factory():", "def factory(D=64):")
    inputs = {name: RNG.standard_normal((32, 64)).astype(np.float32) for name in "AC"}
    new = agree(text, inputs)
    assert "T.atomic_add(C[:, :], x)" in new
    assert "T.atomic_add(C[:, 0 : (D // 8 * 4)], x[:, 0 : (D // 8 * 4)])" in new


def test_a_start_keeps_its_parentheses() -> None:
    body = "for i, j in T.Parallel(16, 32):\n    T.atomic_add(W[(bx << 4) + i, j], x[i, j])"
    assert "T.atomic_add(W[bx << 4 : (bx << 4) + 16, :], x[0:16, :])" in migrated(body)


def test_a_loaded_part_keeps_the_parentheses_of_its_start() -> None:
    body = "for i, j in T.Parallel(32, 32):\n    W[i, j] = x[i, j] * A[(bx << 5) + i, j]\n"
    assert "T.copy(A[bx << 5 : (bx << 5) + 32, :], A_shared)" in migrated(body)


def test_rows_in_another_type_are_converted_once() -> None:
    tile = TILE.replace('"float32"', '"float16"')
    new = flat(migrated("for i, j in T.Parallel(32, 32):\n    T.atomic_add(C[I[bx * 32 + i], bx, j], x[i, j])", tile))
    assert "T.copy(x, x_cast) for i in T.serial(32): T.atomic_add(C[I[bx * 32 + i], bx, 0:32], x_cast[i, :])" in new


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("for i, j in T.Parallel(32, 32):\n    T.atomic_add(C[I[i + j], 0, j], x[i, j])", "TL416"),
        ("for i, j in T.Parallel(32, 32):\n    T.atomic_add(W[j, i], x[i, j])", "TL416"),
        ("for i, j in T.Parallel(32, 32):\n    if x[i, j] > 0:\n        T.atomic_add(W[i, j], x[i, j])", "TL416"),
        ("T.atomic_addx4(W[bx, 0], x[0, 0])", "TL173"),
        ("for i, g in T.Parallel(32, 8):\n    T.atomic_addx4(W[i, g * 2], x[i, g * 4])", "TL173"),
    ],
)
def test_what_is_no_row_is_refused(body: str, code: str) -> None:
    assert [found for found, _ in refused(gpu_file(PARAMS, TILE + body, launch=LAUNCH))] == [code]
