"""Pipelines made by hand: in program order where no wait comes too early, refused else.

The simulator has no barriers of a GPU, so the expected values are those of the product itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, refused, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

PARAMS = 'A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")'
FACTORY = "M, N, K = 64, 64, 96"
LAUNCH = "T.Kernel(2, 2, threads=256) as (bx, by)"
TILES = """
    a = T.alloc_shared((32, 32), "float16")
    b = T.alloc_shared((32, 32), "float16")
    c = T.alloc_fragment((32, 32), "float32")
    """
COPIES = "T.tma_copy(A[by * 32, k * 32], a, barrier={0})\n        T.tma_copy(B[k * 32, bx * 32], b, barrier={0})"
STORE = "T.copy(c, C[by * 32, bx * 32])"


def kernel(body: str, factory: str = FACTORY) -> str:
    return gpu_file(PARAMS, body, launch=LAUNCH, factory=factory)


def check(text: str, k: int = 96) -> str:
    """Migrate, run, compare with the product; the new text."""
    new = migrated(text)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, k)).astype(np.float16), rng.standard_normal((k, 64)).astype(np.float16)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"A": a, "B": b}, reading=reading)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(np.asarray(found["C"], np.float64), expected, 1e-3, 1e-2)
    for left in ("barrier", "mbar", "T.ws", "wait", "tma", "wgmma", "tcgen05", "tmem"):
        assert left not in new
    return new


SPECIALISED = f"""{TILES}
    ready = T.alloc_barrier(arrive_count=128)
    done = T.alloc_barrier(arrive_count=128)
    with T.ws(0):
        T.clear(c)
    for k in T.serial(3):
        with T.ws(1):
            T.barrier_wait(done, (k + 1) % 2)
            T.tma_copy(A[by * 32, k * 32], a, barrier=ready)
            T.tma_copy(B[k * 32, bx * 32], b, barrier=ready)  # the second operand
            T.barrier_arrive(ready)
        with T.ws(0):
            # the product
            T.barrier_wait(ready, k % 2)
            T.gemm(a, b, c)
            T.barrier_arrive(done)
    with T.ws(0):
        {STORE}
    """


def test_producer_and_consumer() -> None:
    new = check(kernel(SPECIALISED))
    assert "T.copy(B[k * 32, bx * 32], b)  # the second operand" in new
    assert "# the product" in new


def test_other_names_and_spellings() -> None:
    body = SPECIALISED.replace("ready", "full").replace("done", "empty").replace("T.barrier_wait(full, k % 2)", "WAIT")
    body = body.replace("WAIT", "T.mbarrier_wait_parity(mbarrier=full, parity=k & 1)")
    check(kernel(body.replace("T.barrier_arrive(full)", "T.mbarrier_arrive(full)")))


def test_a_list_of_barriers_with_one_stage_each() -> None:
    body = SPECIALISED.replace(
        "ready = T.alloc_barrier(arrive_count=128)", "bars = T.alloc_barrier([128, 128] * stages)"
    )
    body = body.replace("    done = T.alloc_barrier(arrive_count=128)\n", "")
    body = body.replace(
        "T.barrier_wait(done, (k + 1) % 2)", "T.barrier_wait(bars[k % stages + stages], (k // stages + 1) % 2)"
    )
    body = body.replace("T.barrier_wait(ready, k % 2)", "T.barrier_wait(bars[k % stages], k // stages % 2)")
    body = body.replace("T.barrier_arrive(done)", "T.barrier_arrive(bars[k % stages + stages])")
    check(kernel(body.replace("ready", "bars[k % stages]"), FACTORY + "\nstages = 2"))


@pytest.mark.parametrize("tail", ["", ", mbar=bar"])
def test_products_in_tensor_memory(tail: str) -> None:
    body = f"""{TILES.replace("alloc_fragment", "alloc_tmem")}
    bar = T.alloc_barrier(1)
    for k in T.serial(3):
        T.copy(A[by * 32, k * 32], a)
        T.copy(B[k * 32, bx * 32], b)
        T.tcgen05_gemm(a, b, c, mbar=bar, clear_accum=k == 0)
        T.mbarrier_wait_parity(bar, k % 2)
    {STORE}
    """
    check(kernel(body if tail else body.replace("        T.mbarrier_wait_parity(bar, k % 2)\n", "")))


def test_explicit_wgmma() -> None:
    body = f"""{TILES}
    T.clear(c)
    for k in T.serial(3):
        T.copy(A[by * 32, k * 32], a)
        T.copy(B[k * 32, bx * 32], b)
        T.wgmma_gemm(a, b, c)
        T.wait_wgmma(0)
    {STORE}
    """
    check(kernel(body))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the consumer stands before its producer
        ("T.barrier_wait(ready, k % 2)", "T.barrier_wait(ready, (k + 1) % 2)"),
        ("T.barrier_wait(done, (k + 1) % 2)", "T.barrier_wait(done, k % 2)"),
        # nobody arrives, or not all
        ("            T.barrier_arrive(ready)\n", ""),
        ("done = T.alloc_barrier(arrive_count=128)", "done = T.alloc_barrier(arrive_count=256)"),
        # not to be followed
        ("T.barrier_wait(ready, k % 2)", "T.barrier_wait(ready, A[0, 0])"),
        ("            T.barrier_arrive(done)", "            if bx == 0:\n                T.barrier_arrive(done)"),
        # each group has a fragment of its own
        ("            T.barrier_arrive(ready)", "            T.clear(c)\n            T.barrier_arrive(ready)"),
        # the pair of a cluster
        ("T.gemm(a, b, c)", "T.tcgen05_gemm(a, b, c, mbar=done, use_2cta=True)"),
        # no plain form
        ("T.gemm(a, b, c)", "T.gemm(a, b, c)\n            T.tma_scatter4(a, C, 0, [0, 1, 2, 3])"),
    ],
)
def test_what_cannot_be_put_in_order_is_refused(old: str, new: str) -> None:
    assert old in SPECIALISED
    found = refused(kernel(SPECIALISED.replace(old, new)))
    assert {"TL182", "TL183"} <= {code for code, _ in found}


def test_two_loops_that_run_at_the_same_time_are_refused() -> None:
    body = f"""{TILES}
    ready = T.alloc_barrier(arrive_count=128)
    done = T.alloc_barrier(arrive_count=128)
    with T.ws(1):
        for k in T.serial(3):
            T.barrier_wait(done, (k + 1) % 2)
            T.tma_copy(A[by * 32, k * 32], a, barrier=ready)
            T.tma_copy(B[k * 32, bx * 32], b, barrier=ready)
            T.barrier_arrive(ready)
    with T.ws(0):
        T.clear(c)
        for k in T.serial(3):
            T.barrier_wait(ready, k % 2)
            T.gemm(a, b, c)
            T.barrier_arrive(done)
        {STORE}
    """
    assert {"TL182", "TL183"} <= {code for code, _ in refused(kernel(body))}


def test_other_reasons_are_told_without_those_that_would_not_matter() -> None:
    text = kernel(SPECIALISED.replace("T.gemm(a, b, c)", "T.gemm(a, b, c)\n            T.sync_grid()"))
    assert {d.code for d in result_of(text).diagnostics if d.severity == "error"} == {"TL187"}


GROUPS = f"""{TILES}
    ready = T.alloc_barrier(32)
    done = T.alloc_barrier(64)
    all_done = T.alloc_barrier(64)
    tx = T.get_thread_binding()
    if tx < 32:
        for k in T.serial(3):
            T.mbarrier_wait_parity(done, (k + 1) % 2)
            T.tma_copy(A[by * 32, k * 32], a, barrier=ready)
            T.tma_copy(B[k * 32, bx * 32], b, barrier=ready)
            T.mbarrier_arrive(ready)
    elif tx < 96:
        for k in T.serial(3):
            T.mbarrier_wait_parity(ready, k % 2)
            T.gemm(a, b, c, clear_accum=k == 0)
            T.mbarrier_arrive(done)
        T.mbarrier_arrive(all_done)
    T.mbarrier_wait_parity(all_done, 0)
    {STORE}
    """
ARMS = f"""{TILES}
    out = T.alloc_fragment((32, 32), "float32")
    loaded = T.alloc_barrier(32)
    free = T.alloc_barrier(64)
    made = T.alloc_barrier(64)
    stored = T.alloc_barrier(32)
    tx = T.get_thread_binding()
    for k in T.serial(3):
        if tx >= 96 and tx < 160:
            if k > 0:
                T.mbarrier_wait_parity(stored, (k - 1) % 2)
            T.mbarrier_wait_parity(loaded, k % 2)
            T.gemm(a, b, c, clear_accum=k == 0)
            T.mbarrier_arrive(free)
            T.mbarrier_arrive(made)
        elif tx < 32:
            T.mbarrier_wait_parity(free, (k + 1) % 2)
            T.tma_copy(A[by * 32, k * 32], a, barrier=loaded)
            T.tma_copy(B[k * 32, bx * 32], b, barrier=loaded)
            T.mbarrier_arrive(loaded)
            T.mbarrier_wait_parity(made, k % 2)
            if k == 2:
                T.copy(c, C[by * 32, bx * 32])
            T.mbarrier_arrive(stored)
    """.replace('    out = T.alloc_fragment((32, 32), "float32")\n', "").replace(
    'c = T.alloc_fragment((32, 32), "float32")', 'c = T.alloc_tmem((32, 32), "float32")'
)


@pytest.mark.parametrize("body", [GROUPS, GROUPS.replace("tx < 96", "32 <= tx and tx < 96"), ARMS])
def test_groups_of_threads(body: str) -> None:
    new = check(kernel(body))
    assert "tx" not in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.mbarrier_arrive(done)", "pass"),  # the loads wait for ever
        ("ready = T.alloc_barrier(32)", "ready = T.alloc_barrier(64)"),  # 32 threads arrive
        ("elif tx < 96:\n        for k in T.serial(3)", "elif tx < 96:\n        for k in T.serial(4)"),
        (
            "T.mbarrier_arrive(all_done)",
            "T.mbarrier_arrive(all_done)\n        C[0, tx] = 1.0",
        ),  # another use of threads
        ("T.mbarrier_arrive(all_done)", "T.mbarrier_arrive(all_done)\n        T.atomic_add(C[0, 0], 1.0)"),  # 64 times
    ],
)
def test_groups_of_threads_that_are_refused(old: str, new: str) -> None:
    assert old in GROUPS
    codes = {code for code, _ in refused(kernel(GROUPS.replace(old, new)))}
    assert codes & {"TL182", "TL184"}


def test_a_variable_that_one_group_changes_and_all_threads_read_is_refused() -> None:
    body = GROUPS.replace("    tx = T.get", '    n = T.alloc_var("int32")\n    n = 0\n    tx = T.get')
    body = body.replace(
        "            T.mbarrier_arrive(ready)", "            T.mbarrier_arrive(ready)\n            n = k"
    )
    assert {code for code, _ in refused(kernel(body.replace("C[by * 32,", "C[by * 32 + n,")))} & {"TL182", "TL184"}


@pytest.mark.parametrize("behind", [False, True])
def test_names_that_two_groups_give_different_values(behind: bool) -> None:
    body = GROUPS.replace(
        "            T.mbarrier_wait_parity(done", "            n = k * 32\n            T.mbarrier_wait_parity(done"
    )
    body = body.replace("A[by * 32, k * 32]", "A[by * 32, n]").replace("B[k * 32,", "B[n,")
    body = body.replace("            T.gemm(", "            n = k\n            T.gemm(")
    body = body.replace("accum=k ==", "accum=n ==")
    if behind:
        assert {code for code, _ in refused(kernel(body.replace("C[by * 32,", "C[by * 32 + n,")))} & {"TL182", "TL184"}
    else:
        check(kernel(body))


TILES_OF_SOME = """
x = T.alloc_shared((32, 64), "float32")
s = T.alloc_shared((32,), "float32")
T.copy(A[bx * 32, 0], x)
if T.get_thread_binding() < 32:
    r = T.alloc_fragment((32,), "float32")
    T.reduce_sum(x, r, dim=1)
    T.copy(r, s)
if T.get_thread_binding() < 64:
    for i in T.Parallel(32):
        Y[bx * 32 + i] = s[i] * 2.0
else:
    t = T.alloc_fragment((32, 64), "float32")
    for i, j in T.Parallel(32, 64):
        t[i, j] = x[i, j] - s[i]
    T.copy(t, B[bx * 32, 0])
"""
TILES_OF_SOME_PARAMS = ", ".join(
    f'{name}: T.Tensor({shape}, "float32")' for name, shape in (("A", "(64, 64)"), ("B", "(64, 64)"), ("Y", "(64,)"))
)


def test_tiles_of_some_threads_are_tiles_of_all() -> None:
    new = migrated(gpu_file(TILES_OF_SOME_PARAMS, TILES_OF_SOME))
    assert "get_thread_binding" not in new
    a = np.random.default_rng(0).integers(-4, 4, (64, 64)).astype(np.float32)
    found = run(new, {"A": a})
    sums = a.sum(axis=1)
    np.testing.assert_array_equal(found["Y"], sums * 2)
    np.testing.assert_array_equal(found["B"], a - sums[:, None])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        Y[bx * 32 + i] = s[i]", "        Y[bx * 32 + i] = s[i] + T.get_thread_binding()"),
        ("if T.get_thread_binding() < 64:", "if T.get_thread_binding() < bx:"),
        ("    T.copy(r, s)", "    T.copy(r, s)\n    s[0] += 1.0"),  # 32 times
        ("        t[i, j] = x[i, j] - s[i]", "        t[i, j] = x[i, j] - r[i]"),  # other threads have no sums
    ],
)
def test_threads_that_differ_in_another_way_stay(old: str, new: str) -> None:
    assert old in TILES_OF_SOME
    text = gpu_file(TILES_OF_SOME_PARAMS, TILES_OF_SOME.replace(old, new))
    assert "TL184" in {code for code, _ in refused(text)}


BY_THREADS = """
    a = T.alloc_shared((2, 32, 32), "float16")
    b = T.alloc_shared((2, 32, 32), "float16")
    left = T.alloc_fragment((32, 16), "float32")
    right = T.alloc_fragment((32, 16), "float32")
    full = T.alloc_barrier([128] * 2)
    free = T.alloc_barrier([128] * 2)
    tx = T.get_thread_binding()
    if tx < 128:
        T.clear(left)
        T.clear(right)
        for k in T.serial(T.ceildiv(K, 64)):
            for s in T.unroll(2):
                T.barrier_wait(full[s], k & 1)
                T.wgmma_gemm(a[s, :, :], b[s, :, :16], left)
                T.gemm(a[s, :, :], b[s, :, 16:32], right)
                if k != T.ceildiv(K, 64) - 1:
                    T.barrier_arrive(free[s])
        T.copy(left, C[by * 32, bx * 32])
        T.copy(right, C[by * 32, bx * 32 + 16])
    else:
        for k in T.serial(T.ceildiv(K, 64)):
            for s in T.unroll(2):
                T.barrier_wait(free[s], (k & 1) ^ 1)
                T.ptx_cp_async(
                    T.access_ptr(a[s, (tx - 128) // 4, AT], "w", 8),
                    T.access_ptr(A[by * 32 + (tx - 128) // 4, k * 64 + s * 32 + (tx - 128) % 4 * 8], "r", 8),
                    8,
                )
                for r in T.serial(2):
                    row = r * 16 + (tx - 128) // 8
                    with T.attr("default", "async_scope", 1):
                        for v in T.vectorized(4):
                            b[s, row, (tx - 128) % 8 * 4 + v] = B[
                                k * 64 + s * 32 + row, bx * 32 + (tx - 128) % 8 * 4 + v
                            ]
                T.cp_async_barrier_noinc(full[s])
"""


def by_threads(at: str) -> str:
    return kernel(BY_THREADS.replace("AT", at), FACTORY.replace("96", "128"))


def test_tiles_that_single_threads_of_a_group_fill() -> None:
    new = check(by_threads("(tx - 128) % 4 * 8"), k=128)
    assert 'b_left = T.alloc_shared((32, 16), "float16")' in new


@pytest.mark.parametrize(
    "at",
    ["(tx - 128) % 4 * 16", "(tx - 128) % 4 * 8 + 8", "(tx - 128) % 2 * 8", "tx // 4 % 4 * 8", "24 - tx % 4 * 8"],
    ids=["gaps", "not-from-0", "twice", "one-digit-for-both", "backwards"],
)
def test_tiles_that_single_threads_fill_otherwise(at: str) -> None:
    assert {code for code, _ in refused(by_threads(at))} == {"TL181", "TL182", "TL184", "TL193", "TL194"}
