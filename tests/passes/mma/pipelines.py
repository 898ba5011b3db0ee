"""A k-tiled product of 64 x 64 by 64 x 64 in two blocks, staged by hand, in parts that can be spelled differently."""

from __future__ import annotations

from tests.passes.support import IMPORTS, block, kernel

PARAMS = (
    'A: T.Tensor((64, 64), "float16")',
    'B: T.Tensor((64, 64), "float16")',
    'O: T.Tensor((64, 64), "float32")',
)


def ahead(
    *,
    slots: str = "2",
    guard: str = "k < loop_k - 1",
    before: str = "",
    first_a: str = "A[cid * 32, 0], a1[0, :, :]",
    next_a: str = "A[cid * 32, (k + 1) * 32], a1[(k + 1) % SLOTS, :, :]",
    next_b: str = "B[(k + 1) * 32, 0], b1[(k + 1) % SLOTS, :, :]",
    load_a: str = "a1[k % SLOTS, 0, kk * 16], a0[kk % 2, :, :]",
    load_b: str = "b1[k % SLOTS, kk * 16, 0], b0[kk % 2, :, :]",
    left: str = "a0[kk % 2, :, :]",
    right: str = "b0[kk % 2, :, :]",
    init: str = "T.And(k == 0, kk == 0)",
    slices: str = "loop_kk",
    inside: str = "",
    loop: str = "for k in T.serial(loop_k):",
) -> str:
    """Slabs of 32 in L1 that are fetched an iteration ahead, slices of 16 in L0: pattern P1."""
    body = f"""
a1 = T.alloc_L1(({slots}, 32, 32), "float16")
b1 = T.alloc_L1(({slots}, 32, 64), "float16")
a0 = T.alloc_L0A((2, 32, 16), "float16")
b0 = T.alloc_L0B((2, 16, 64), "float16")
c0 = T.alloc_L0C((32, 64), "float32")
with T.Scope("C"):
    loop_k = T.ceildiv(64, 32)
    loop_kk = T.ceildiv(32, 16)
    T.copy({first_a})
    T.copy(B[0, 0], b1[0, :, :])
    T.barrier_all()
    {loop}
{block(before, 8)}
        if {guard}:
            T.copy({next_a})
            T.copy({next_b})
        T.barrier_all()
        for kk in T.serial({slices}):
            T.copy({load_a})
            T.copy({load_b})
            T.barrier_all()
            T.mma({left}, {right}, c0, init={init})
            T.barrier_all()
{block(inside, 12)}
        T.barrier_all()
    T.copy(c0, O[cid * 32, 0])
"""
    return IMPORTS + kernel(body.replace("SLOTS", slots), params=PARAMS, jit="out_idx=[2]")


def plain(lines: str, *, allocs: str = "", factory: str = "") -> str:
    """One product of tiles that are fetched whole; ``lines`` stage and multiply them."""
    body = f"""
a1 = T.alloc_L1((32, 64), "float16")
b1 = T.alloc_L1((64, 64), "float16")
c0 = T.alloc_L0C((32, 64), "float32")
{allocs.strip()}
with T.Scope("C"):
    T.copy(A[cid * 32, 0], a1)
    T.copy(B[0, 0], b1)
    T.barrier_all()
{block(lines, 4)}
    T.barrier_all()
    T.copy(c0, O[cid * 32, 0])
"""
    return IMPORTS + kernel(body, params=PARAMS, jit="out_idx=[2]", factory=factory)
