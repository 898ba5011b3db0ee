"""A two-way Expert kernel in parts: ``C -> V -> C -> V`` in every iteration, with cross flags."""

from __future__ import annotations

from tests.passes.support import IMPORTS, block, kernel

PARAMS = (
    'A: T.Tensor((64, 64), "float16")',
    'B: T.Tensor((64, 64), "float16")',
    'O: T.Tensor((64, 64), "float32")',
    'ws_s: T.Tensor((2, 32, 16), "float32")',
    'ws_p: T.Tensor((2, 32, 16), "float16")',
    'ws_o: T.Tensor((2, 32, 64), "float32")',
)
ALLOCS = """
q_l1 = T.alloc_L1((32, 64), "float16")
k_l1 = T.alloc_L1((16, 64), "float16")
w_l1 = T.alloc_L1((16, 64), "float16")
p_l1 = T.alloc_L1((32, 16), "float16")
s_l0 = T.alloc_L0C((32, 16), "float32")
o_l0 = T.alloc_L0C((32, 64), "float32")
s = T.alloc_ub((16, 16), "float32")
t = T.alloc_ub((16, 16), "float32")
p = T.alloc_ub((16, 16), "float16")
o = T.alloc_ub((16, 64), "float32")
acc = T.alloc_ub((16, 64), "float32")
"""


def two_way(
    *,
    cube_top: str = "",
    cube_start: str = "",
    cube_late: str = "",
    vector_top: str = "",
    vector_start: str = "",
    vector_late: str = "",
    k_row: str = "i * 16",
    w_row: str = "i * 16",
    cube_loop: str = "for i in T.serial(4):",
    vector_loop: str = "for i in T.serial(4):",
    around: str = "",
    between: str = "",
) -> str:
    """The file; ``late`` stands behind the wait for the other core's tile, ``around`` is a loop around both."""
    programs = f"""
with T.Scope("C"):
{block(cube_top, 4)}
    T.copy(A[cid * 32, 0], q_l1)
    {cube_loop}
{block(cube_start, 8)}
        T.copy(B[{k_row}, 0], k_l1)
        T.gemm_v0(q_l1, k_l1, s_l0, transpose_B=True, init=True)
        T.copy(s_l0, ws_s[cid, 0, 0])
        T.set_cross_flag("FIX", 0)
        T.wait_cross_flag(1)
        T.copy(ws_p[cid, 0, 0], p_l1)
{block(cube_late, 8)}
        T.copy(B[{w_row}, 0], w_l1)
        T.gemm_v0(p_l1, w_l1, o_l0, init=True)
        T.copy(o_l0, ws_o[cid, 0, 0])
        T.set_cross_flag("FIX", 2)
{between}
with T.Scope("V"):
{block(vector_top, 4)}
    T.tile.fill(acc, 0.0)
    {vector_loop}
{block(vector_start, 8)}
        T.wait_cross_flag(0)
        T.copy(ws_s[cid, vid * 16, 0], s)
        T.tile.mul(t, s, 0.5)
{block(vector_late, 8)}
        T.copy(t, p)
        T.barrier_all()
        T.copy(p, ws_p[cid, vid * 16, 0])
        T.set_cross_flag("MTE3", 1)
        T.wait_cross_flag(2)
        T.copy(ws_o[cid, vid * 16, 0], o)
        T.tile.add(acc, acc, o)
    T.copy(acc, O[cid * 32 + vid * 16, 0])
"""
    body = ALLOCS + (around + "\n" + block(programs, 4) if around else programs)
    return IMPORTS + kernel(body, params=PARAMS, jit="out_idx=[2], workspace_idx=[3, 4, 5]")
