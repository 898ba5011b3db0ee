"""TLE-Struct for NPUs: local buffers, copies with tails, arithmetic on buffers. Around FlagFFT's page on TLE."""

import torch
import triton
import triton.experimental.tle as tle
import triton.language as tl


@triton.jit
def chain(a_ptr, b_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    tail = tl.minimum(n - start, BLOCK)
    a_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    b_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    scale_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tmp_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    out_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(a_ptr + i, a_ub, [tail])
    tle.dsa.copy(b_ptr + i, b_ub, [tail])
    tle.dsa.copy(scale_ptr + i, scale_ub, [tail])
    tle.dsa.sub(a_ub, b_ub, tmp_ub)  # tmp = a - b
    tle.dsa.mul(tmp_ub, b_ub, tmp_ub)  # tmp = tmp * b
    tle.dsa.div(tmp_ub, scale_ub, out_ub)  # out = tmp / scale
    tle.dsa.copy(out_ub, out_ptr + i, [tail])


@triton.jit
def clamped(x_ptr, floor_ptr, ceil_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, BLOCK)
    tail = min(n - start, BLOCK)
    x_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    floor_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    ceil_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tmp_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    y_ub = tle.dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(x_ptr + i, x_ub, [tail])
    tle.dsa.copy(floor_ptr + i, floor_ub, [tail])
    tle.dsa.copy(ceil_ptr + i, ceil_ub, [tail])
    tle.dsa.max(x_ub, floor_ub, tmp_ub)  # tmp = max(x, floor)
    tle.dsa.min(tmp_ub, ceil_ub, y_ub)  # y = min(tmp, ceil)
    tle.dsa.copy(y_ub, y_ptr + i, [tail])


@triton.jit
def halved(x_ptr, w_ptr, out_ptr, M, N, XBLOCK: tl.constexpr, YBLOCK: tl.constexpr):
    """Tails along both axes, buffers in two memories, a tensor in between."""
    row = tl.program_id(0) * XBLOCK
    col = tl.program_id(1) * YBLOCK
    rows = row + tl.arange(0, XBLOCK)
    cols = col + tl.arange(0, YBLOCK)
    tail_m = tl.minimum(M - row, XBLOCK)
    tail_n = tl.minimum(N - col, YBLOCK)
    x_ptrs = x_ptr + rows[:, None] * N + cols[None, :]
    w_ptrs = w_ptr + rows[:, None] * N + cols[None, :]
    out_ptrs = out_ptr + rows[:, None] * N + cols[None, :]
    a_ub = tle.dsa.alloc([XBLOCK, YBLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    b_ub = tle.dsa.alloc([XBLOCK, YBLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    c_ub = tle.dsa.alloc([XBLOCK, YBLOCK], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(x_ptrs, a_ub, [tail_m, tail_n])  # GMEM -> local
    tle.dsa.copy(w_ptrs, b_ub, [tail_m, tail_n])
    tle.dsa.add(a_ub, b_ub, c_ub)
    c_val = tle.dsa.to_tensor(c_ub, writable=True)
    result = c_val * 0.5
    d_ub = tle.dsa.to_buffer(result, tle.dsa.ascend.UB)
    tle.dsa.copy(d_ub, out_ptrs, [tail_m, tail_n])  # local -> GMEM


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    a_l1 = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.L1)
    b_l1 = tle.dsa.alloc([BK, BN], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.L1)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tle.dsa.pipeline(0, K, BK, num_stages=2):
        rk = k + tl.arange(0, BK)
        tle.dsa.copy(a_ptr + rm[:, None] * K + rk[None, :], a_l1, [BM, BK])
        tle.dsa.copy(b_ptr + rk[:, None] * N + rn[None, :], b_l1, [BK, BN])
        acc = tl.dot(tle.dsa.to_tensor(a_l1), tle.dsa.to_tensor(b_l1), acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def looped(x_ptr, y_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Buffers outside of the loop, tails in it: what a short copy leaves behind is never stored."""
    row = tl.program_id(0) * BM
    rows = row + tl.arange(0, BM)
    a_ub = tle.dsa.alloc([BM, BN], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    b_ub = tle.dsa.alloc([BM, BN], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tail_m = tl.minimum(M - row, BM)
    for col in range(0, N, BN):
        cols = col + tl.arange(0, BN)
        tail_n = tl.minimum(N - col, BN)
        tle.dsa.copy(x_ptr + rows[:, None] * N + cols[None, :], a_ub, [tail_m, tail_n])
        tle.dsa.copy(y_ptr + rows[:, None] * N + cols[None, :], b_ub, [tail_m, tail_n])
        tle.dsa.add(a_ub, b_ub, a_ub)
        tle.dsa.copy(a_ub, out_ptr + rows[:, None] * N + cols[None, :], [tail_m, tail_n])


@triton.jit
def flow(a_ptr, b_ptr, out_ptr, N, BM: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    a_ptrs = a_ptr + rows[:, None] * N + tl.arange(0, BK)[None, :]
    b_ptrs = b_ptr + rows[:, None] * N + tl.arange(0, BK)[None, :]
    out_ptrs = out_ptr + rows[:, None] * N + tl.arange(0, BK)[None, :]
    a_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    b_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    c_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(a_ptrs, a_ub, [BM, BK])
    tle.dsa.copy(b_ptrs, b_ub, [BM, BK])
    with tle.dsa.hint(inter_no_alias=True):
        tle.dsa.add(a_ub, b_ub, c_ub)
    c_val = tle.dsa.to_tensor(c_ub, writable=True)
    out_ub = tle.dsa.to_buffer(c_val, tle.dsa.ascend.UB)
    tle.dsa.copy(out_ub, out_ptrs, [BM, BK])


def run_chain(a, b, scale):
    out = torch.empty_like(a)
    n = a.numel()
    chain[(triton.cdiv(n, 128),)](a, b, scale, out, n, BLOCK=128)
    return out


def run_clamped(x, floor, ceil):
    y = torch.empty_like(x)
    n = x.numel()
    clamped[(triton.cdiv(n, 128),)](x, floor, ceil, y, n, BLOCK=128)
    return y


def run_halved(x, w):
    out = torch.empty_like(x)
    M, N = x.shape
    halved[(triton.cdiv(M, 32), triton.cdiv(N, 64))](x, w, out, M, N, XBLOCK=32, YBLOCK=64)
    return out


def run_looped(x, y):
    out = torch.empty_like(x)
    M, N = x.shape
    looped[(triton.cdiv(M, 16),)](x, y, out, M, N, BM=16, BN=64)
    return out


def run_product(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    product[(M // 32, N // 32)](a, b, c, M, N, K, BM=32, BN=32, BK=64)
    return c


def run_flow(a, b):
    out = torch.empty_like(a)
    M, N = a.shape
    flow[(M // 16,)](a, b, out, N, BM=16, BK=64)
    return out


torch.manual_seed(0)
a = torch.randn(300, dtype=torch.float32)
b = torch.randn(300, dtype=torch.float32)
s = torch.rand(300, dtype=torch.float32) + 0.5
torch.testing.assert_close(run_chain(a, b, s), (a - b) * b / s)
torch.testing.assert_close(run_clamped(a, b, s), torch.minimum(torch.maximum(a, b), s))
x = torch.randn(50, 100, dtype=torch.float32)
w = torch.randn(50, 100, dtype=torch.float32)
torch.testing.assert_close(run_halved(x, w), (x + w) * 0.5)
torch.testing.assert_close(run_looped(x, w), x + w)
h = torch.randn(64, 128, dtype=torch.float16)
g = torch.randn(128, 64, dtype=torch.float16)
torch.testing.assert_close(run_product(h, g), h.float() @ g.float(), rtol=1e-2, atol=1e-2)
p = torch.randn(32, 64, dtype=torch.float16)
r = torch.randn(32, 64, dtype=torch.float16)
torch.testing.assert_close(run_flow(p, r), p + r)
