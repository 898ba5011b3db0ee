"""Kernels with ``tle``, ``tle.gpu`` and ``tle.dsa``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interpreter.support import Run
from tl2npu.interpreter.session import KernelFault

Runs = Callable[[str], Run]


def test_asynchronous_loads_of_a_product(run: Runs) -> None:
    run(
        """
    @triton.jit
    def matmul(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
        i = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for k in tl.range(0, K, B, num_stages=2):
            a = tle.load(a_ptr + i[:, None] * K + k + i[None, :], is_async=True)
            b = tle.load(b_ptr + (k + i[:, None]) * B + i[None, :], mask=i[None, :] < B, other=0.0, is_async=True)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + i[:, None] * B + i[None, :], acc)

    torch.manual_seed(0)
    a, b, c = torch.randn(16, 48), torch.randn(48, 16), torch.empty(16, 16)
    matmul[(1,)](a, b, c, 48, 16)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)
    """
    )


def test_tiles_of_tensors(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x_ptr, out):
        i = tl.arange(0, 4)
        x = tl.load(x_ptr + i[:, None] * 4 + i[None, :])
        sub = x.extract_tile(index=[1, 0], shape=[2, 2])
        sub = tl.maximum(sub, 0.0)
        x = x.insert_tile(sub, index=[1, 0])
        x = tle.insert_tile(x, tle.extract_tile(x, 3, [2, 2]) * 10, 1)
        tl.store(out + i[:, None] * 4 + i[None, :], x)

    x, out = -torch.arange(16.0).reshape(4, 4), torch.empty(4, 4)
    k[(1,)](x, out)
    expected = x.clone()
    expected[2:, :2] = 0
    expected[:2, 2:] = x[2:, 2:] * 10
    assert torch.equal(out, expected)
    """
    )


def test_cumsum_gives_what_comes_before_and_the_sum(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 8)
        before, total = tle.cumsum(tl.load(x + i), 0)
        tl.store(out + i, before)
        tl.store(out + 8, total)

    x, out = torch.arange(1, 9, dtype=torch.int32), torch.empty(9, dtype=torch.int32)
    k[(1,)](x, out)
    assert out.tolist() == [0, 1, 3, 6, 10, 15, 21, 28, 36]
    """
    )


def test_staging_in_shared_memory(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(a, out, BM: tl.constexpr, BK: tl.constexpr):
        i, j = tl.arange(0, BM), tl.arange(0, BK)
        smem = tle.gpu.alloc([BM, BK], dtype=tl.float16, scope=tle.gpu.storage_kind.smem)
        tle.gpu.copy(a + i[:, None] * BK + j[None, :], smem, [BM, BK])
        whole = tl.load(tle.gpu.local_ptr(smem, None))
        for start in tle.gpu.pipeline(0, BK, 8, num_stages=2):
            rows = tl.broadcast_to(i[:, None], (BM, 8))
            cols = tl.broadcast_to(tl.arange(0, 8)[None, :] + start, (BM, 8))
            part = tle.gpu.local_ptr(smem, (rows, cols))
            tl.store(part, tl.load(part) * 2)
        both = tl.load(tle.gpu.local_ptr(smem)) + tle.gpu.memory_space(whole, "shared_memory")
        tl.store(out + i[:, None] * BK + j[None, :], both)
        tle.gpu.copy(smem, a + i[:, None] * BK + j[None, :], [BM, BK])

    torch.manual_seed(0)
    a = torch.randn(8, 16).half()
    before, out = a.clone(), torch.empty(8, 16, dtype=torch.float16)
    k[(1,)](a, out, 8, 16)
    torch.testing.assert_close(out, before * 3, rtol=2e-3, atol=0)
    assert torch.equal(a, before * 2)
    """
    )


def test_atomics_on_shared_memory(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(x, out, BINS: tl.constexpr, BLOCK: tl.constexpr):
        bins = tl.arange(0, BINS)
        counts = tle.gpu.alloc([BINS], dtype=tl.int32, scope=tle.gpu.smem)
        tl.store(tle.gpu.local_ptr(counts, (bins,)), tl.zeros([BINS], dtype=tl.int32))
        tl.atomic_add(tle.gpu.local_ptr(counts, (tl.load(x + tl.arange(0, BLOCK)) % BINS,)), 1)
        tl.store(out + bins, tl.load(tle.gpu.local_ptr(counts, (bins,))))

    torch.manual_seed(0)
    x, out = torch.randint(0, 1000, (64,), dtype=torch.int32), torch.empty(16, dtype=torch.int32)
    k[(1,)](x, out, 16, 64)
    assert torch.equal(out, torch.bincount(x % 16, minlength=16).int())
    """
    )
    assert not found.faults


def test_an_index_outside_of_shared_memory_is_told(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(out):
        i = tl.arange(0, 16)
        smem = tle.gpu.alloc([16], dtype=tl.float32)
        tl.store(tle.gpu.local_ptr(smem, (i,)), i.to(tl.float32))
        tl.store(out + i, tl.load(tle.gpu.local_ptr(smem, (i + 8,))))

    out = torch.zeros(16)
    k[(1,)](out)
    assert out[:8].tolist() == [8.0 + i for i in range(8)]
    assert out[8:].isnan().all()
    """
    )
    assert len(found.faults) == 1


def test_arithmetic_on_local_buffers_with_a_tail(run: Runs) -> None:
    run(
        """
    import triton.experimental.tle as dsa_style

    @triton.jit
    def k(x, y, out, n, B: tl.constexpr):
        start = tl.program_id(0) * B
        i = start + tl.arange(0, B)
        tail = tl.minimum(n - start, B)
        a_ub = dsa_style.dsa.alloc([B], dtype=tl.float32, mem_addr_space=dsa_style.dsa.ascend.UB)
        b_ub = dsa_style.dsa.alloc([B], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
        tmp = tle.dsa.alloc([B], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
        tle.dsa.copy(x + i, a_ub, [tail])
        tle.dsa.copy(y + i, b_ub, [tail])
        with tle.dsa.hint(inter_no_alias=True):
            tle.dsa.sub(a_ub, b_ub, tmp)
            tle.dsa.mul(tmp, b_ub, tmp)
            tle.dsa.div(tmp, a_ub, tmp)
            tle.dsa.max(tmp, b_ub, tmp)
            tle.dsa.min(tmp, a_ub, tmp)
            tle.dsa.add(tmp, b_ub, tmp)
        result = tle.dsa.to_tensor(tmp, writable=True) * 0.5
        tle.dsa.copy(tle.dsa.to_buffer(result, tle.dsa.ascend.UB), out + i, [tail])

    torch.manual_seed(0)
    x, y, out = torch.rand(100) + 1, torch.rand(100), torch.zeros(128)
    k[(2,)](x, y, out, 100, 64)
    expected = (torch.minimum(torch.maximum((x - y) * y / x, y), x) + y) * 0.5
    torch.testing.assert_close(out[:100], expected)
    assert not out[100:].any()
    """
    )


def test_a_shorter_copy_leaves_the_rest_of_a_buffer(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 16)
        ub = tle.dsa.alloc([16], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
        tle.dsa.copy(x + i, ub, [10])
        tl.store(out + i, tle.dsa.to_tensor(ub))

    x, out = torch.arange(16.0), torch.zeros(16)
    k[(1,)](x, out)
    assert torch.equal(out[:10], x[:10])
    assert out[10:].isnan().all()
    """
    )


@pytest.mark.parametrize(
    "name", "device_mesh sharding make_sharded_tensor reshard remote shard_id distributed_dot S P B".split()
)
def test_names_for_several_devices_are_refused_by_name(run: Runs, name: str) -> None:
    with pytest.raises(KernelFault, match=rf"tle\.{name} cannot be executed here: several devices"):
        run(f"tle.{name}(1)")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("tle.extract_tile(v, [2, 0], [8, 8])", r"there is no tile \[2, 0\] in a grid of 2 x 2 tiles"),
        ("tle.extract_tile(v, [0, 0], [3, 8])", r"is not a grid of tiles of shape \[3, 8\]"),
        ("tle.dsa.add(ub, ub, half)", "tle.dsa.add: buffers of fp32 and fp16"),
        ("tle.dsa.copy(ub, half, [16])", "tle.dsa.copy: from fp32 to fp16"),
        ("tle.dsa.copy(ub, ub, [17])", r"the shape \[17\] is not inside of \[16\]"),
        ("tle.gpu.wgmma(v, v)", "tle.gpu.wgmma cannot be executed here: it is about the warps of a GPU"),
        ("tle.raw.call(v)", "tle.raw.call cannot be executed here"),
    ],
)
def test_what_is_refused(run: Runs, wrong: str, said: str) -> None:
    with pytest.raises(KernelFault, match=said):
        run(
            f"""
        @triton.jit
        def k(x):
            v = tl.zeros((16, 16), tl.float32)
            ub = tle.dsa.alloc([16], dtype=tl.float32, mem_addr_space=tle.dsa.ascend.UB)
            half = tle.dsa.alloc([16], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
            {wrong}

        k[(1,)](torch.zeros(1))
        """
        )
