"""TLE-Lite: asynchronous loads, parts of tiles, pipelines. Kernels around the statements of FlagFFT's page on TLE."""

import torch
import triton
import triton.experimental.tle.language as tle
import triton.language as tl


@triton.jit
def tail(x_ptr, y_ptr, n_elements, BLOCK: tl.constexpr):
    base = tl.program_id(0) * BLOCK
    offs = base + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tle.load(x_ptr + offs, mask=mask, other=0.0, is_async=True)
    tl.store(y_ptr + offs, x * x + 1.0, mask=mask)


@triton.jit
def overlapped(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * stride_am + rk[None, :]
    b = b_ptr + rk[:, None] * stride_bk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=2):
        a_tile = tle.load(a + k, mask=(rm[:, None] < M) & (rk[None, :] < K - k), other=0.0, is_async=True)
        b_tile = tle.load(b + k * stride_bk, mask=(rk[:, None] < K - k) & (rn[None, :] < N), other=0.0, is_async=True)
        acc = tl.dot(a_tile, b_tile, acc)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def quarter(x_ptr, z_ptr, N: tl.constexpr):
    """The second quarter in the lower half of a tile alone, and the tile with it clamped."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    # per-tile work in registers
    sub = x.extract_tile(index=[1, 0], shape=[N // 2, N // 2])
    sub = tl.maximum(sub, 0.0)
    x = x.insert_tile(sub, index=[1, 0])
    z = tle.insert_tile(x, tle.extract_tile(x, 3, [N // 2, N // 2]) * 2.0, [0, 0])
    tl.store(z_ptr + i[:, None] * N + i[None, :], z)


@triton.jit
def grouped(q_ptr, k_ptr, v_ptr, ynumel, X: tl.constexpr, YBLOCK: tl.constexpr, D: tl.constexpr):
    rx = tl.arange(0, X)
    rd = tl.arange(0, D)
    for yoff in tl.range(0, ynumel, YBLOCK, num_stages=2):
        ry = yoff + tl.arange(0, YBLOCK)
        with tle.pipeline_group(0):
            Q = tl.load(q_ptr + rx[:, None] * D + rd[None, :])
            K = tl.load(k_ptr + ry[:, None] * D + rd[None, :])
        with tle.pipeline_group(1):
            KT = tl.trans(K)
        with tle.pipeline_group(2):
            V = tl.dot(Q, KT)
            tl.store(v_ptr + rx[:, None] * ynumel + ry[None, :], V)


@triton.jit
def staged(
    q_ptr,
    k_ptr,
    v_ptr,
    ynumel,
    X: tl.constexpr,
    YBLOCK: tl.constexpr,
    D: tl.constexpr,
    LOAD_TRANS: tl.constexpr,
    ONE_CORE: tl.constexpr,
):
    rx = tl.arange(0, X)
    rd = tl.arange(0, D)
    for yoff in tle.range(
        0,
        ynumel,
        YBLOCK,
        num_stages=2,
        pipe_stages=[0, 0, 1] if LOAD_TRANS else [0, 1, 1],
        pipe_orders=[0, 1, 2],
        executors=[0, 0, 0] if ONE_CORE else [0, 0, range(1, 31)],
    ):
        ry = yoff + tl.arange(0, YBLOCK)
        with tle.pipeline_group(0):
            Q = tl.load(q_ptr + rx[:, None] * D + rd[None, :])
            K = tl.load(k_ptr + ry[:, None] * D + rd[None, :])
        with tle.pipeline_group(1):
            KT = tl.trans(K)
        with tle.pipeline_group(2):
            V = tl.dot(Q, KT)
            tl.store(v_ptr + rx[:, None] * ynumel + ry[None, :], V)


def run_tail(x):
    y = torch.empty_like(x)
    n_elements = x.numel()
    tail[(triton.cdiv(n_elements, 128),)](x, y, n_elements, BLOCK=128)
    return y


def run_overlapped(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    overlapped[grid](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM=32, BN=32, BK=32)
    return c


def run_quarter(x):
    z = torch.empty_like(x)
    quarter[(1,)](x, z, N=32)
    return z


def run_grouped(q, k):
    X = q.shape[0]
    ynumel = k.shape[0]
    v = torch.empty((X, ynumel), dtype=torch.float32, device=q.device)
    grouped[(1,)](q, k, v, ynumel, X=16, YBLOCK=32, D=64)
    return v


def run_staged(q, k):
    X = q.shape[0]
    ynumel = k.shape[0]
    v = torch.empty((X, ynumel), dtype=torch.float32, device=q.device)
    staged[(1,)](q, k, v, ynumel, X=16, YBLOCK=32, D=64, LOAD_TRANS=True, ONE_CORE=False)
    return v


torch.manual_seed(0)
x = torch.randn(300, dtype=torch.float32)
torch.testing.assert_close(run_tail(x), x * x + 1)
a = torch.randn(50, 90, dtype=torch.float16)
b = torch.randn(90, 70, dtype=torch.float16)
torch.testing.assert_close(run_overlapped(a, b), a.float() @ b.float(), rtol=1e-2, atol=1e-2)
t = torch.randn(32, 32, dtype=torch.float32)
expected = t.clone()
expected[16:, :16] = t[16:, :16].clamp(min=0)
expected[:16, :16] = t[16:, 16:] * 2
torch.testing.assert_close(run_quarter(t), expected)
q = torch.randn(16, 64, dtype=torch.float16)
k = torch.randn(96, 64, dtype=torch.float16)
torch.testing.assert_close(run_grouped(q, k), q.float() @ k.float().T, rtol=1e-2, atol=1e-2)
torch.testing.assert_close(run_staged(q, k), q.float() @ k.float().T, rtol=1e-2, atol=1e-2)
