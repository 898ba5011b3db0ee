"""A product whose ReLU is the vector cores' work, for A5: event 0 hands a tile over, event 1 frees its place.

It checks itself against torch.
"""

import torch
import triton
import triton.extension.buffer.language as bl
import triton.language as tl
import triton.language.extra.cann.extension as al


@triton.jit
def product_relu(A, B, C, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    HALF: tl.constexpr = BLOCK_M // 2
    place = bl.alloc(tl.float32, (HALF, BLOCK_N), al.ascend_address_space.UB)
    columns = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * columns
    with al.scope(core_mode="cube"):
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            m, n = tile // columns, tile % columns
            acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.make_block_ptr(A, (M, K), (K, 1), (m * BLOCK_M, k), (BLOCK_M, BLOCK_K), (1, 0))
                b = tl.make_block_ptr(B, (K, N), (N, 1), (k, n * BLOCK_N), (BLOCK_K, BLOCK_N), (1, 0))
                acc = tl.dot(tl.load(a), tl.load(b), acc)
            al.sync_block_wait("vector", "cube", 1, al.PIPE.PIPE_V, al.PIPE.PIPE_FIX)
            al.fixpipe(acc, place, al.FixpipeDMAMode.NZ2ND, al.FixpipeDualDstMode.ROW_SPLIT)
            al.sync_block_set("cube", "vector", 0, al.PIPE.PIPE_FIX, al.PIPE.PIPE_V)
        al.sync_block_wait("vector", "cube", 1, al.PIPE.PIPE_V, al.PIPE.PIPE_FIX)
    with al.scope(core_mode="vector"):
        half = al.sub_vec_id().to(tl.int32)
        al.sync_block_set("vector", "cube", 1, al.PIPE.PIPE_V, al.PIPE.PIPE_FIX)
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            m, n = tile // columns, tile % columns
            al.sync_block_wait("cube", "vector", 0, al.PIPE.PIPE_FIX, al.PIPE.PIPE_V)
            y = tl.maximum(bl.to_tensor(place), 0.0)
            al.sync_block_set("vector", "cube", 1, al.PIPE.PIPE_V, al.PIPE.PIPE_FIX)
            c = tl.make_block_ptr(C, (M, N), (N, 1), (m * BLOCK_M + half * HALF, n * BLOCK_N), (HALF, BLOCK_N), (1, 0))
            tl.store(c, y)


torch.manual_seed(0)
M, N, K = 64, 64, 32
a, b = torch.randn(M, K, dtype=torch.float16, device="npu"), torch.randn(K, N, dtype=torch.float16, device="npu")
c = torch.empty(M, N, device="npu")
product_relu[(2,)](a, b, c, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16)
torch.testing.assert_close(c.cpu(), (a.float() @ b.float()).relu().cpu(), rtol=1e-3, atol=1e-3)
