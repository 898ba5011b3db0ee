"""Memory that is written while what was read from it lives, in part, several times, or through another name."""

import torch
import triton
import triton.experimental.tle as tle
import triton.experimental.tle.language.gpu as shared
import triton.language as tl
from triton.experimental.tle.language import dsa


@triton.jit
def overwritten(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """A tensor keeps what its buffer held; changing the tensor does not change the buffer."""
    i = tl.arange(0, N)
    ub = dsa.alloc([N], dtype=tl.float32, mem_addr_space=dsa.ascend.UB)
    dsa.copy(x_ptr + i, ub, [N])
    t = dsa.to_tensor(ub)
    u = dsa.to_tensor(ub)
    u *= 3.0
    v = dsa.to_tensor(ub)
    dsa.copy(y_ptr + i, ub, [N])
    tl.store(out_ptr + i, t + 10.0 * u + 100.0 * v + 1000.0 * dsa.to_tensor(ub))


@triton.jit
def loop_kept(x_ptr, y_ptr, out_ptr, n, N: tl.constexpr):
    """Read before a loop, written in it; and read at the end of a turn for the next one."""
    i = tl.arange(0, N)
    smem = shared.alloc([N], dtype=tl.float32, scope=shared.smem)
    shared.copy(x_ptr + i, smem, [N])
    first = tl.load(shared.local_ptr(smem))
    last = first
    for turn in range(n):
        shared.copy(y_ptr + turn * N + i, smem, [N])
        tl.store(out_ptr + turn * N + i, first + 10.0 * last + 100.0 * tl.load(shared.local_ptr(smem)))
        last = tl.load(shared.local_ptr(smem))


@triton.jit
def first_kept(x_ptr, out_ptr, N: tl.constexpr):
    """A second name, and a mask, keep the value that a name had before the loop changes it."""
    i = tl.arange(0, N)
    t = tl.load(x_ptr + i) - 31.5
    first = t
    positive = t > 0.0
    for turn in range(3):
        t = t * 0.5 - 1.0
        tl.store(out_ptr + turn * N + i, tl.where(positive, first, t))


@triton.jit
def kept_rest(x_ptr, out_ptr, n, N: tl.constexpr):
    """A shorter copy leaves what the turn before wrote; a masked store leaves the rest."""
    i = tl.arange(0, N)
    ub = tle.dsa.alloc([N], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    tmp = tle.dsa.alloc([N], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
    for start in range(0, n, N):
        tle.dsa.copy(x_ptr + start + i, ub, [min(n - start, N)])
        tle.dsa.add(ub, ub, tmp)
        tl.store(shared.local_ptr(tmp), 7.0, mask=i < 3)
        tl.store(out_ptr + start + i, tle.dsa.to_tensor(tmp))


@triton.jit
def running(x_ptr, out_ptr, n, N: tl.constexpr, HALF: tl.constexpr):
    """Halves of a buffer are added to in every turn."""
    i = tl.arange(0, N)
    smem = shared.alloc([N], dtype=tl.float32)
    tl.store(shared.local_ptr(smem), tl.zeros([N], dtype=tl.float32))
    for turn in range(n):
        x = tl.load(x_ptr + turn * HALF + tl.arange(0, HALF))
        for half in range(2):
            part = shared.local_ptr(smem, (half * HALF + tl.arange(0, HALF),))
            tl.store(part, tl.load(part) * 0.5 + x)
        tl.atomic_add(shared.local_ptr(smem, (tl.arange(0, HALF),)), 1.0)
    tl.store(out_ptr + i, tl.load(shared.local_ptr(smem)))


@triton.jit
def binned(x_ptr, out_ptr, BLOCK: tl.constexpr, bins: tl.constexpr):
    """Several additions to each bin, of one number and of a value each."""
    counts = shared.alloc([bins], dtype=tl.int32)
    i = tl.arange(0, bins)
    tl.store(shared.local_ptr(counts, i), i)
    at = tl.arange(0, BLOCK)
    tl.atomic_add(shared.local_ptr(counts, (at % bins,)), 5)
    x = tl.load(x_ptr + at)
    tl.atomic_add(shared.local_ptr(counts, (at % bins,)), x * 2)
    tl.store(out_ptr + i, tl.load(shared.local_ptr(counts)))


@triton.jit
def transposed(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """B lies as [N, K] in memory and as [K, N] in its buffer."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    a_smem = shared.alloc([BM, BK], dtype=tl.float16)
    b_smem = shared.alloc([BK, BN], dtype=tl.float16)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        shared.copy(a_ptr + rm[:, None] * K + rk[None, :], a_smem, [BM, BK])
        shared.copy(b_ptr + rn[None, :] * K + rk[:, None], b_smem, [BK, BN])
        acc += tl.dot(tl.load(shared.local_ptr(a_smem)), tl.load(shared.local_ptr(b_smem)))
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def inserted(x_ptr, out_ptr, N: tl.constexpr):
    """The tile without the part is still used."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    y = x.insert_tile(x.extract_tile(index=[0, 1], shape=[N // 2, N // 2]), index=2)
    x = x.insert_tile(y.extract_tile(index=1, tile_shape=[N // 2, N // 2]) + 1.0, index=[0, 0])
    tl.store(out_ptr + i[:, None] * N + i[None, :], x + 10.0 * y)


@triton.jit
def bump(memory, N: tl.constexpr):
    old = dsa.to_tensor(memory)
    dsa.to_buffer(old + 1.0, dsa.ascend.UB, bind_buffer=memory)
    return old


@triton.jit
def called(x_ptr, out_ptr, N: tl.constexpr):
    """A device function writes the buffer that it is given; a row of a buffer is a buffer."""
    i = tl.arange(0, N)
    ub = dsa.alloc([N], dtype=tl.float32, mem_addr_space=dsa.ascend.UB)
    dsa.copy(x_ptr + i, ub, [N])
    a = bump(ub, N)
    b = bump(ub, N)
    rest = dsa.subview(ub, [N // 2], [N // 2], [1])
    dsa.copy(x_ptr + tl.arange(0, N // 2), rest, [N // 2])
    tl.store(out_ptr + i, a + 10.0 * b + 100.0 * dsa.to_tensor(ub))


@triton.jit
def padded(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    """What a short copy leaves is seen by a maximum."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ub = dsa.alloc([BLOCK], dtype=tl.float32, mem_addr_space=dsa.ascend.UB)
    dsa.to_buffer(tl.full([BLOCK], -float("inf"), tl.float32), dsa.ascend.UB, bind_buffer=ub)
    dsa.copy(x_ptr + row * cols + i, ub, [cols])
    x = dsa.to_tensor(ub)
    e = tl.exp(x - tl.max(x, axis=0))
    out = dsa.to_buffer(e / tl.sum(e, axis=0), dsa.ascend.UB)
    dsa.copy(out, y_ptr + row * cols + i, [cols])


@triton.jit
def delayed(x_ptr, out_ptr, n, B: tl.constexpr):
    """Each turn of a pipelined loop stores what the turn before loaded."""
    i = tl.arange(0, B)
    a = shared.alloc([B], dtype=tl.float32)
    tl.store(shared.local_ptr(a), tl.full([B], 5.0, tl.float32))
    for k in tl.range(0, n, num_stages=2):
        shared.copy(a, out_ptr + k * B + i, [B])
        shared.copy(x_ptr + k * B + i, a, [B])


@triton.jit
def prefetched(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The tile of the next turn is copied after the product of this one."""
    rm = tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_smem = shared.alloc([BM, BK], dtype=tl.float16)
    shared.copy(a_ptr + rm[:, None] * K + rk[None, :], a_smem, [BM, BK])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K - BK, BK, num_stages=2):
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(tl.load(shared.local_ptr(a_smem)), b, acc)
        shared.copy(a_ptr + rm[:, None] * K + (k + BK + rk)[None, :], a_smem, [BM, BK])
    b = tl.load(b_ptr + (K - BK + rk)[:, None] * N + rn[None, :])
    acc = tl.dot(tl.load(shared.local_ptr(a_smem)), b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


x = torch.arange(64, dtype=torch.float32)
y = torch.arange(64, 128, dtype=torch.float32) * 0.5
out = torch.empty(64, dtype=torch.float32)
overwritten[(1,)](x, y, out, N=64)
torch.testing.assert_close(out, x + 30 * x + 100 * x + 1000 * y)

ys = torch.randn(4 * 64, dtype=torch.float32)
outs = torch.empty(4 * 64, dtype=torch.float32)
loop_kept[(1,)](x, ys, outs, 4, N=64)
before = torch.cat([x, ys[:-64]])
torch.testing.assert_close(outs, x.repeat(4) + 10 * before + 100 * ys)

firsts = torch.empty(3 * 64, dtype=torch.float32)
first_kept[(1,)](x, firsts, N=64)
c = x - 31.5
turns = [c * 0.5 - 1, c * 0.25 - 1.5, c * 0.125 - 1.75]
torch.testing.assert_close(firsts, torch.cat([torch.where(c > 0, c, turn) for turn in turns]))

xs = torch.randn(160, dtype=torch.float32)
kept = torch.empty(192, dtype=torch.float32)
n = xs.numel()
kept_rest[(1,)](xs, kept, n, N=64)
expected = 2 * torch.cat([xs, xs[96:128]])
expected.view(3, 64)[:, :3] = 7
torch.testing.assert_close(kept, expected)

rows = torch.randn(5 * 32, dtype=torch.float32)
sums = torch.empty(64, dtype=torch.float32)
running[(1,)](rows, sums, 5, N=64, HALF=32)
expected = torch.zeros(2, 32)
for row in rows.view(5, 32):
    expected = expected * 0.5 + row
    expected[0] += 1
torch.testing.assert_close(sums, expected.view(-1))

ints = torch.arange(128, dtype=torch.int32)
bins = torch.empty(32, dtype=torch.int32)
binned[(1,)](ints, bins, BLOCK=128, bins=32)
wanted = torch.arange(32, dtype=torch.int32)
for place in range(128):
    wanted[place % 32] += 5 + 2 * place
assert torch.equal(bins, wanted)

a = torch.randn(64, 128, dtype=torch.float16)
b = torch.randn(32, 128, dtype=torch.float16)
c = torch.empty(64, 32, dtype=torch.float32)
transposed[(2,)](a, b, c, 64, 32, 128, BM=32, BN=32, BK=64)
torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-2, atol=1e-2)

t = torch.randn(32, 32, dtype=torch.float32)
z = torch.empty(32, 32, dtype=torch.float32)
inserted[(1,)](t, z, N=32)
yy = t.clone()
yy[16:, :16] = t[:16, 16:]
xx = t.clone()
xx[:16, :16] = yy[:16, 16:] + 1
torch.testing.assert_close(z, xx + 10 * yy)

called[(1,)](x, out, N=64)
end = torch.cat([x[:32] + 2, x[:32]])
torch.testing.assert_close(out, x + 10 * (x + 1) + 100 * end)

rows = torch.randn(6, 100, dtype=torch.float32)
soft = torch.empty(6, 100, dtype=torch.float32)
padded[(6,)](rows, soft, 100, BLOCK=128)
torch.testing.assert_close(soft, torch.softmax(rows, 1))

late = torch.empty(4 * 64, dtype=torch.float32)
delayed[(1,)](ys, late, 4, B=64)
torch.testing.assert_close(late, torch.cat([torch.full((64,), 5.0), ys[:-64]]))

b = torch.randn(128, 32, dtype=torch.float16)
c = torch.empty(32, 32, dtype=torch.float32)
prefetched[(1,)](a, b, c, 32, 128, BM=32, BN=32, BK=32)
torch.testing.assert_close(c, a[:32].float() @ b.float(), rtol=1e-2, atol=1e-2)
