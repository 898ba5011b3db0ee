"""TLE-Struct for GPUs: shared memory, copies, pointers into it. The kernels around FlagFFT's page on TLE."""

import torch
import triton
import triton.experimental.tle.language as tle
import triton.language as tl


@triton.jit
def hinted(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = tle.gpu.memory_space(x, "shared_memory")
    tl.store(y_ptr + i, tl.exp(x), mask=i < n)


@triton.jit
def added(
    a_ptr,
    b_ptr,
    c_ptr,
    ynumel,
    xstride_a,
    ystride_a,
    xstride_b,
    ystride_b,
    xstride_c,
    ystride_c,
    XBLOCK: tl.constexpr,
    YBLOCK: tl.constexpr,
):
    xoffs = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    a_ptrs = a_ptr + xstride_a * xoffs[:, None]
    b_ptrs = b_ptr + xstride_b * xoffs[:, None]
    c_ptrs = c_ptr + xstride_c * xoffs[:, None]
    a_smem = tle.gpu.alloc([XBLOCK, YBLOCK], dtype=tl.float32, scope=tle.gpu.storage_kind.smem)
    b_smem = tle.gpu.alloc([XBLOCK, YBLOCK], dtype=tl.float32, layout=None, scope=tle.gpu.smem)
    c_smem = tle.gpu.alloc([XBLOCK, YBLOCK], dtype=tl.float32)
    for yoff in tle.gpu.pipeline(0, ynumel, YBLOCK, num_stages=2):
        yoffs = tl.arange(0, YBLOCK) + yoff
        tle.gpu.copy(a_ptrs + ystride_a * yoffs[None, :], a_smem, [XBLOCK, YBLOCK])
        tle.gpu.copy(b_ptrs + ystride_b * yoffs[None, :], b_smem, [XBLOCK, YBLOCK])
        aval = tl.load(tle.gpu.local_ptr(a_smem))
        bval = tl.load(tle.gpu.local_ptr(b_smem))
        # through shared memory again
        tl.store(tle.gpu.local_ptr(c_smem), aval + bval)
        tle.gpu.copy(c_smem, c_ptrs + ystride_c * yoffs[None, :], [XBLOCK, YBLOCK])


@triton.jit
def sliced(x_ptr, y_ptr, scale, BLOCK: tl.constexpr, SLICE: tl.constexpr):
    """Each slice of a block is scaled by its number more."""
    base = tl.program_id(0) * BLOCK
    smem = tle.gpu.alloc([BLOCK], dtype=tl.float32, scope=tle.gpu.smem)
    tle.gpu.copy(x_ptr + base + tl.arange(0, BLOCK), smem, [BLOCK])
    for number in range(BLOCK // SLICE):
        offset = number * SLICE
        idx = offset + tl.arange(0, SLICE)
        slice_ptr = tle.gpu.local_ptr(smem, (idx,))
        vals = tl.load(slice_ptr)
        tl.store(slice_ptr, vals * scale)
    tle.gpu.copy(smem, y_ptr + base + tl.arange(0, BLOCK), [BLOCK])


@triton.jit
def tiled(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr):
    """A wide tile of A is staged once; the product goes through it in steps along K."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    smem_a = tle.gpu.alloc([BM, BK], dtype=tl.float16, scope=tle.gpu.smem)
    tle.gpu.copy(a_ptr + rm[:, None] * K + tl.arange(0, BK)[None, :], smem_a, [BM, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k_start in range(0, BK, STEP):
        rows = tl.broadcast_to(tl.arange(0, BM)[:, None], (BM, STEP))
        cols = tl.broadcast_to(tl.arange(0, STEP)[None, :] + k_start, (BM, STEP))
        a_slice = tle.gpu.local_ptr(smem_a, (rows, cols))
        a_vals = tl.load(a_slice)
        b = tl.load(b_ptr + (k_start + tl.arange(0, STEP))[:, None] * N + rn[None, :])
        acc = tl.dot(a_vals, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def staging(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_smem = tle.gpu.alloc([BM, BK], dtype=tl.float16, scope=tle.gpu.storage_kind.smem)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a_ptrs = a_ptr + rm[:, None] * K + (k + rk)[None, :]
        tle.gpu.copy(a_ptrs, a_smem, [BM, BK])
        rows = tl.broadcast_to(tl.arange(0, BM)[:, None], (BM, BK))
        cols = tl.broadcast_to(tl.arange(0, BK)[None, :], (BM, BK))
        a_ptr_local = tle.gpu.local_ptr(a_smem, (rows, cols))
        a_tile = tl.load(a_ptr_local)
        b_tile = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a_tile, b_tile, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def counted(out_ptr, BLOCK: tl.constexpr):
    smem_i32 = tle.gpu.alloc([BLOCK], dtype=tl.int32, scope=tle.gpu.smem)
    ptr = tle.gpu.local_ptr(smem_i32, (tl.arange(0, BLOCK),))
    tl.store(ptr, tl.zeros([BLOCK], dtype=tl.int32))
    tl.atomic_add(ptr, 1)
    vals = tl.load(ptr)
    tl.store(out_ptr + tl.arange(0, BLOCK), vals)


@triton.jit
def histogram(out_ptr, BLOCK: tl.constexpr, bins: tl.constexpr):
    counts = tle.gpu.alloc([bins], dtype=tl.int32, scope=tle.gpu.storage_kind.smem)
    whole = tle.gpu.local_ptr(counts)
    tl.store(whole, tl.zeros([bins], dtype=tl.int32))
    idx = tl.arange(0, BLOCK) % bins
    count_ptr = tle.gpu.local_ptr(counts, (idx,))
    tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr + tl.arange(0, bins), tl.load(whole))


def run_hinted(x):
    y = torch.empty_like(x)
    n = x.numel()
    hinted[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
    return y


def run_added(a, b):
    c = torch.empty_like(a)
    xnumel, ynumel = a.shape
    added[(triton.cdiv(xnumel, 32),)](a, b, c, ynumel, *a.stride(), *b.stride(), *c.stride(), XBLOCK=32, YBLOCK=64)
    return c


def run_sliced(x):
    y = torch.empty_like(x)
    sliced[(x.numel() // 256,)](x, y, 3.0, BLOCK=256, SLICE=64)
    return y


def run_tiled(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    tiled[(M // 32, N // 32)](a, b, c, M, N, K, BM=32, BN=32, BK=128, STEP=32)
    return c


def run_staging(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    staging[(M // 32, N // 32)](a, b, c, M, N, K, BM=32, BN=32, BK=64)
    return c


def run_counted():
    out = torch.empty(128, dtype=torch.int32)
    counted[(1,)](out, BLOCK=128)
    return out


def run_histogram():
    out = torch.empty(256, dtype=torch.int32)
    histogram[(1,)](out, BLOCK=1024, bins=256)
    return out


torch.manual_seed(0)
x = torch.randn(512, dtype=torch.float32)
torch.testing.assert_close(run_hinted(x), torch.exp(x))
torch.testing.assert_close(run_sliced(x), x * 3)
m = torch.randn(64, 128, dtype=torch.float32)
n = torch.randn(64, 128, dtype=torch.float32)
torch.testing.assert_close(run_added(m, n), m + n)
a = torch.randn(64, 128, dtype=torch.float16)
b = torch.randn(128, 64, dtype=torch.float16)
torch.testing.assert_close(run_tiled(a, b), a.float() @ b.float(), rtol=1e-2, atol=1e-2)
torch.testing.assert_close(run_staging(a, b), a.float() @ b.float(), rtol=1e-2, atol=1e-2)
assert torch.equal(run_counted(), torch.ones(128, dtype=torch.int32))
assert torch.equal(run_histogram(), torch.full((256,), 4, dtype=torch.int32))
