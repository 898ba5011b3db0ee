"""Atomic additions of whole tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.stage import blocked, same
from tests.passes.gpu.support import agree, gpu_file
from tl2npu.passes.gpu import atomics, fills
from tl2npu.passes.gpu.element_copies import rewrite as element_copies
from tl2npu.passes.plain import wide_atomics as atomics_wide

RNG = np.random.default_rng(3)
PARAMS = 'A: T.Tensor((64, 48), "float32"), C: T.Tensor((60, 48), "float32")'
INPUT = {"A": RNG.standard_normal((64, 48)).astype(np.float32), "C": np.zeros((60, 48), np.float32)}
TILE = 'a = T.alloc_shared((32, 48), "float32")\nT.copy(A[bx * 32, 0], a)\n'


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.Parallel(32, 48):\n    T.atomic_add(C[bx * 28 + i, j], a[i, j])",
        'for i, j in T.Parallel(32, 48):\n    T.atomic_add(C[bx * 28 + i, j], a[i, j], memory_order="relaxed")',
        "for r, c in T.Parallel(32, 48):\n    if bx * 28 + r < 60:\n        T.atomic_add(C[bx * 28 + r, c], a[r, c])",
        "T.atomic_add(C[bx * 28, 0], a)",
        "T.atomic_add(C[bx * 28 : bx * 28 + 32, :], a, use_tma=True)",
    ],
)
def test_forms(body: str) -> None:
    new = same(gpu_file(PARAMS, TILE + body), INPUT, element_copies.to_copies, atomics.to_tile)
    assert "T.tile.atomic_add(C[bx * 28" in new
    assert "T.atomic_add" not in new
    assert "use_tma" not in new


def test_a_tile_of_one_row_is_added_to_a_vector() -> None:
    params = 'A: T.Tensor((64, 48), "float32"), C: T.Tensor((100,), "float32")'
    body = 'a = T.alloc_shared((1, 48), "float32")\nT.copy(A[bx, 0], a)\nT.atomic_add(C[bx * 28], a)'
    new = same(gpu_file(params, body), {"A": INPUT["A"], "C": np.zeros(100, np.float32)}, atomics.to_tile)
    assert "T.tile.atomic_add(C[bx * 28], a_flat)" in new
    two = body.replace("(1, 48)", "(2, 24)")
    assert blocked(gpu_file(params, two), atomics.to_tile)[0] == "TL173"


@pytest.mark.parametrize(
    ("part", "added"),
    [
        ("a[8:32, :]", "T.tile.atomic_add(C[bx * 28, 0], a[8:, :])"),
        ("a[0:4, 0:48]", "T.tile.atomic_add(C[bx * 28, 0], a[:4, :])"),
        ("a[4:8, :]", "T.copy(a[4:8, :], a_part)\n            T.tile.atomic_add(C[bx * 28, 0], a_part)"),
        ("a[:8, :16]", "T.copy(a[:8, :16], a_part)\n            T.tile.atomic_add(C[bx * 28, 0], a_part)"),
    ],
)
def test_a_part_of_a_tile(part: str, added: str) -> None:
    """No slice with two bounds, of which the compiler reads no size, and no rows without their stride."""
    new = same(gpu_file(PARAMS, TILE + f"T.atomic_add(C[bx * 28, 0], {part})"), INPUT, atomics.to_tile)
    assert added in new


def test_two_parts_of_a_tile() -> None:
    body = "T.atomic_add(C[bx * 28, 0], a[4:8, :])\nT.atomic_add(C[bx * 28 + 24, 0], a[8:12, 0:48])"
    new = same(gpu_file(PARAMS, TILE + body), INPUT, atomics.to_tile)
    assert new.count('T.alloc_shared([4, 48], "float32")') == 2


def test_groups_of_elements_are_elements() -> None:
    body = TILE + "for i, g in T.Parallel(32, 12):\n    T.atomic_addx4(C[bx * 28 + i, g * 4], a[i, g * 4])"
    new = same(gpu_file(PARAMS, body), INPUT, atomics_wide.to_elements, element_copies.to_copies, atomics.to_tile)
    assert "T.tile.atomic_add(C[bx * 28" in new
    assert "addx4" not in new


def test_a_value_is_computed_first() -> None:
    body = TILE + "for i, j in T.Parallel(32, 48):\n    T.atomic_add(C[bx * 28 + i, j], a[i, j] * A[i, j])"
    new = same(gpu_file(PARAMS, body), INPUT, element_copies.to_copies, atomics.to_tile, fills.rewrite)
    assert "c_tile[i, j] = a[i, j] * a_tile[i, j]" in new
    assert "T.tile.atomic_add(C[bx * 28, 0], c_tile)" in new


@pytest.mark.parametrize("staged", [True, False])
def test_products_are_added_from_l0c(staged: bool) -> None:
    params = 'A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")'
    add = "t = T.alloc_shared((32, 32), 'float32')\nT.copy(c, t)\nT.atomic_add(C[0, 0], t)"
    if not staged:
        add = "for i, j in T.Parallel(32, 32):\n    T.atomic_add(C[i, j], c[i, j])"
    body = f"""a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 32), "float16")
c = T.alloc_fragment((32, 32), "float32")
T.copy(A[0, bx * 32], a)
T.copy(B[bx * 32, 0], b)
T.clear(c)
T.gemm(a, b, c)
{add}
"""
    inputs = {
        "A": RNG.standard_normal((32, 64)).astype(np.float16),
        "B": RNG.standard_normal((64, 32)).astype(np.float16),
        "C": np.zeros((32, 32), np.float32),
    }
    new = agree(gpu_file(params, body, jit="@tilelang.jit"), inputs, rtol=1e-2, atol=1e-2)
    assert "T.tile.atomic_add(C[0, 0], c)" in new
    assert "c = T.alloc_fragment" in new
    assert "t = " not in new


@pytest.mark.parametrize(
    "body",
    [
        "T.atomic_add(C[bx, 0], 1.0)",
        "T.atomic_add(a[0, 0], 1.0)",
        "T.atomic_max(C[0, 0], a)",
        "T.atomic_add(C[0, 0], a[1:bx, :])",
        "for i, j in T.Parallel(32, 48):\n    if j < 20:\n        T.atomic_add(C[bx * 28 + i, j], a[i, j])",
        "for i, j in T.Parallel(32, 48):\n    T.atomic_add(C[0, j], a[i, j])",
    ],
)
def test_refusals(body: str) -> None:
    code, _ = blocked(gpu_file(PARAMS, TILE + body), element_copies.to_copies, atomics.to_tile)
    assert code in ("TL173", "TL170")
