"""Loops of one core over the same batch of tiles become one loop, if nothing else passes between them (TL313)."""

from __future__ import annotations

import pytest

from tests.passes.support import IMPORTS, block, developer, kernel, migrated, same_results

PARAMS = (
    'A: T.Tensor((64, 64), "float16")',
    'B: T.Tensor((64, 64), "float16")',
    'O: T.Tensor((64, 64), "float32")',
    'ws_h: T.Tensor((2, 2, 16, 64), "float32")',
    'ws_p: T.Tensor((2, 2, 16, 64), "float16")',
)
ALLOCS = """
x = T.alloc_L1((16, 64), "float16")
w = T.alloc_L1((64, 64), "float16")
p_l1 = T.alloc_L1((16, 64), "float16")
h_l0 = T.alloc_L0C((16, 64), "float32")
y_l0 = T.alloc_L0C((16, 64), "float32")
h = T.alloc_ub((8, 64), "float32")
r = T.alloc_ub((8, 64), "float32")
p = T.alloc_ub((8, 64), "float16")
"""


def batch(
    *,
    first: str = "for i in T.serial(2):",
    second: str = "for i in T.serial(2):",
    vector: str = "for i in T.serial(2):",
    load: str = "T.copy(A[cid * 32 + i * 16, 0], x)",
    between: str = "",
    produce: str = "T.copy(h_l0, ws_h[cid, i, :, :])",
    row: str = "i",
    late: str = "",
) -> str:
    """``C -> V -> C``: a loop for each product on the cube core, one for the vector core between them."""
    body = f"""{ALLOCS}
with T.Scope("C"):
    T.copy(B[0, 0], w)
    {first}
        {load}
        T.gemm_v0(x, w, h_l0, init=True)
        {produce}
        T.set_cross_flag("FIX", 0)
{block(between, 4)}
    {second}
        T.wait_cross_flag(1)
        T.copy(ws_p[cid, {row}, :, :], p_l1)
{block(late, 8)}
        T.gemm_v0(p_l1, w, y_l0, init=True)
        T.copy(y_l0, O[cid * 32 + {row} * 16, 0])
with T.Scope("V"):
    {vector}
        T.wait_cross_flag(0)
        T.copy(ws_h[cid, i, vid * 8 : vid * 8 + 8, :], h)
        T.tile.relu(r, h)
        T.copy(r, p)
        T.copy(p, ws_p[cid, i, vid * 8 : vid * 8 + 8, :])
        T.set_cross_flag("MTE3", 1)
"""
    return IMPORTS + kernel(body, params=PARAMS, jit="out_idx=[2], workspace_idx=[3, 4]")


JOINED = {
    "as it is": batch(),
    "another name": batch(second="for j in T.serial(2):", row="j"),
    "range": batch(first="for i in range(2):", second="for i in range(0, 2):"),
    "flags between": batch(between='T.set_flag("mte1", "mte2", 0)\nT.wait_flag("mte1", "mte2", 0)'),
    "the same names": batch(load="off = cid * 32 + i * 16\n        T.copy(A[off, 0], x)", late="off = cid * 32"),
}


@pytest.mark.parametrize("old", JOINED.values(), ids=JOINED)
def test_loops_over_one_batch_become_one(old: str) -> None:
    new = developer(old)
    same_results(old, new)
    assert new.split("with T.Kernel")[1].count("for ") == 1
    assert "TL313" in {change.code for change in migrated(old).changes}


APART = {
    "the second loop reads the last tile of the first": batch(late="T.gemm_v0(x, w, y_l0, init=True)"),
    "other lengths": batch(second="for i in T.serial(1):"),
    "another step": batch(second="for i in T.serial(0, 2, 2):"),
    "work between them": batch(between="T.copy(A[0, 0], x)"),
    "not the tile of its own iteration": batch(row="1 - i"),
}


@pytest.mark.parametrize("old", APART.values(), ids=APART)
def test_loops_that_pass_on_more_than_a_tile_stay_apart(old: str) -> None:
    result = migrated(old)
    assert "TL313" not in {change.code for change in result.changes}
    assert result.kernels[0].target not in ("developer", "developer-threads1")
