"""Rows picked by an index buffer, partial L1 tiles (TL852 to TL855: g1_g_gather, g2_rows)."""

from __future__ import annotations

import pytest

from tests.checks.support import ONE, SPLIT, errors, kernel

PARAMS = (
    'KV: T.Tensor((2048, 2, 64), "float16"), Ix: T.Tensor((256, 32), "int32"), '
    'Q: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 32), "float32")'
)
ALLOCS = """
ix = T.alloc_ub((32,), "int32")
row = T.alloc_ub((64,), "float16")
other = T.alloc_ub((64,), "float16")
rows = T.alloc_ub((32, 64), "float16")
q = T.alloc_shared((32, 64), "float16")
kv = T.alloc_shared((32, 64), "float16")
c = T.alloc_fragment((32, 32), "float32")
x = T.alloc_ub((32, 32), "float32")
T.copy(Q[cid * 32, 0], q)
"""
INDEX = "T.copy(Ix[cid, 0:32], ix)\n"
GATHER = """
for i in range(32):
    T.copy(KV[ix[i], 0, :], row)
    T.copy(row, kv[i, :])
"""
PRODUCT = """
T.gemm_v0(q, kv, c, transpose_B=True, init=True)
T.copy(c, x)
"""
PARALLEL = """
for i, j in T.Parallel(32, 32):
    x[i, j] = x[i, j] * 0.5
"""
TILE = "T.tile.mul(x, x, 0.5)\n"
END = "T.copy(x, O[cid * 32, 0])\n"


def check(*parts: str, launch: str = SPLIT) -> list[str]:
    return errors(kernel(ALLOCS, *parts), params=PARAMS, jit="out_idx=[3]", launch=launch)


@pytest.mark.parametrize("launch", [SPLIT, ONE])
def test_gathered_rows_for_the_cube(launch: str) -> None:
    assert check(INDEX, GATHER, PRODUCT, PARALLEL, END, launch=launch) == []
    assert check(PRODUCT, INDEX, GATHER, PARALLEL, END, launch=launch) == []
    assert check(INDEX, GATHER, PRODUCT, TILE, END, launch=launch) == ["TL853"]


def test_a_scalar_loop_is_no_vectorised_parallel() -> None:
    scalar = "for i, j in T.Parallel(32, 32):\n    x[i, j] = 0.5"
    assert "TL853" in check(INDEX, GATHER, PRODUCT, TILE, scalar, END)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("T.copy(KV[ix[i], 0, :], row)", "n = ix[i]\n    T.copy(KV[n, 0, :], row)", "TL852"),
        ("KV[ix[i], 0", "KV[ix[i] * 2, 0", "TL852"),
        ("KV[ix[i], 0", "KV[i, 0", "TL852"),
        ("    T.copy(row, kv", "    T.tile.exp(row, row)\n    T.copy(row, kv", ""),
        ("    T.copy(row, kv", "    T.copy(row, other)\n    T.copy(other, kv", "TL854"),
        ("    T.copy(row, kv", "    T.tile.exp(other, row)\n    T.copy(row, kv", "TL854"),
        ("range(32)", "range(16)", "TL841"),
        ("kv[i, :]", "kv[i, 0:64]", ""),
        ("kv[i, :]", "kv[i, 0:32]", "TL841"),
    ],
)
def test_what_may_stand_in_a_gather(old: str, new: str, found: str) -> None:
    got = check(INDEX, GATHER.replace(old, new), PRODUCT, PARALLEL, END)
    assert found in got if found else got == []


def test_the_index_buffer_comes_whole_from_global_memory() -> None:
    assert "TL852" in check(INDEX.replace("0:32], ix", "0:16], ix[0:16]"), GATHER, PRODUCT, PARALLEL, END)
    computed = "for i in T.serial(32):\n    ix[i] = 5"
    assert "TL852" in check(computed, GATHER, PRODUCT, PARALLEL, END)


def test_gather_into_rows_of_a_tile() -> None:
    body = (INDEX, "for i in range(32):\n    T.copy(KV[ix[i], 0, :], rows[i, :])", PARALLEL)
    assert check(*body, launch=ONE) == []
    assert "TL854" in check(*body)


def test_rows_of_an_ordinary_tile_cannot_be_handed_over_one_by_one() -> None:
    body = "T.tile.fill(rows, 1.0)\nfor i in range(32):\n    T.copy(rows[i, :], kv[i, :])"
    assert "TL841" in check(body, PRODUCT, PARALLEL, END)


PARTIAL = """
T.copy(Q[cid * 32, 0], kv[0:32, 0:32])
T.copy(Q[cid * 32, 32], kv[0:32, 32:64])
"""


def test_parts_of_an_l1_tile_beside_parallel() -> None:
    assert check(PARTIAL, PRODUCT, PARALLEL, END) == ["TL855"]
    assert check(PARTIAL, PRODUCT, TILE, END) == []
    assert check("T.copy(Q[cid * 32, 0], kv[0:32, 0:64])", PRODUCT, PARALLEL, END) == []
