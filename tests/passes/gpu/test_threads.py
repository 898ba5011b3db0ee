"""Code for single threads as loops over all threads. The simulator has no threads: NumPy says what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RNG = np.random.default_rng(7)
A = RNG.standard_normal((4, 128)).astype(np.float32)
PARAMS = "A: T.Tensor((4, 128), 'float32'), B: T.Tensor((4, 128), 'float32')"
ONE = "T.Kernel(4, threads=128) as bx"
TX = "tx = T.get_thread_binding()\n"


def check(body: str, expected: np.ndarray, launch: str = ONE, params: str = PARAMS, rtol: float = 1e-6) -> str:
    """Migrate, run on the inputs, compare; the new text."""
    new = migrated(gpu_file(params, body, launch=launch))
    assert "thread_binding" not in new
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"A": A, "B": np.full((4, 128), 5.0, np.float32)}, reading=reading)
        np.testing.assert_allclose(found["B"], expected, rtol=rtol, atol=1e-6)
    return new


@pytest.mark.parametrize(
    "binding",
    [
        "T.get_thread_binding()",
        "T.get_thread_binding(0)",
        "T.get_thread_binding(dim=0)",
        'T.thread_binding(128, thread="threadIdx.x")',
        'T.thread_binding(0, 128, thread="threadIdx.x")',
    ],
)
def test_every_thread_an_element(binding: str) -> None:
    new = check(f"tx = {binding}\nB[bx, tx] = A[bx, tx] * 2.0", A * 2)
    assert new.count("T.copy(") == 2  # tiles, and no loop over elements


def test_the_default_number_of_threads() -> None:
    check(TX + "B[bx, tx] = A[bx, tx] * 2.0", A * 2, "T.Kernel(4) as bx")


def test_a_loop_outside_and_a_name_for_the_place() -> None:
    body = """
    for k in T.serial(4):
        idx = k * 32 + tx
        B[bx, idx] = A[bx, idx] + 1.0
    """
    check("tx = T.get_thread_binding(0)" + body.replace("\n    ", "\n"), A + 1, "T.Kernel(4, threads=32) as bx")


def test_elements_that_a_condition_chooses_are_stored_and_no_others() -> None:
    body = TX + "i = tx + 0\nif i < 5 + bx or i >= 100:\n    B[bx, i] = A[bx, i]"
    columns, rows = np.arange(128)[None, :], np.arange(4)[:, None]
    check(body, np.where((columns < 5 + rows) | (columns >= 100), A, 5.0))


def test_both_branches() -> None:
    body = TX + (
        "s = T.alloc_shared((128,), 'float32')\nif tx < 64:\n    s[tx] = A[bx, tx]\n"
        "else:\n    s[tx] = A[bx, tx] * 3.0\nB[bx, tx] = s[tx]"
    )
    check(body, np.where(np.arange(128) < 64, A, A * 3))


def test_shared_memory_between_barriers() -> None:
    body = TX + (
        "s = T.alloc_shared((128,), 'float32')\ns[tx] = A[bx, tx] * 2.0\nT.sync_threads()\n"
        "t = T.alloc_shared((128,), 'float32')\nt[tx] = s[tx] + s[0]\nT.sync_threads()\nB[bx, tx] = t[tx]"
    )
    check(body, A * 2 + A[:, :1] * 2)


def test_one_thread_alone() -> None:
    body = TX + (
        "s = T.alloc_shared((8,), 'float32')\nif tx == 0:\n    s[0] = 2.5\n"
        "T.sync_threads()\nB[bx, tx] = A[bx, tx] + s[0]"
    )
    new = check(body, A + 2.5)
    assert "if tx" not in new


def test_storage_of_a_thread() -> None:
    body = TX + (
        "own = T.alloc_local((1,), 'float32')\nown[0] = A[bx, tx]\nfor k in T.serial(3):\n    own[0] = own[0] * 2.0\n"
        "B[bx, tx] = own[0]"
    )
    check(body, A * 8)


def test_a_variable_of_a_thread() -> None:
    body = TX + "v = T.alloc_var('float32')\nv = A[bx, tx]\nv = v + 1.0\nB[bx, tx] = v * v"
    check(body, (A + 1) ** 2)


def test_a_loaded_name_stays_with_its_uses() -> None:
    check(TX + "v = A[bx, tx]\nw = v * 2.0\nB[bx, tx] = w + v", A * 3)


MATRIX = RNG.standard_normal((8, 128)).astype(np.float32)
VECTOR = RNG.standard_normal(128).astype(np.float32)
PRODUCT = "X: T.Tensor((8, 128), 'float32'), W: T.Tensor((128,), 'float32'), B: T.Tensor((8,), 'float32')"


def product(body: str, launch: str) -> str:
    """A matrix times a vector: migrate, run, compare; the new text."""
    new = migrated(gpu_file(PRODUCT, body, launch=launch))
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": MATRIX, "W": VECTOR}, reading=reading)
        np.testing.assert_allclose(found["B"], MATRIX.astype(np.float64) @ VECTOR.astype(np.float64), rtol=1e-4)
    return new


def test_threads_that_share_a_sum() -> None:
    body = """
    tn = T.get_thread_binding(0)
    tk = T.get_thread_binding(1)
    x = T.alloc_local((1,), "float32")
    w = T.alloc_local((1,), "float32")
    total = T.alloc_local((1,), "float32")
    s = T.alloc_shared((8,), "float32")
    if tk == 0:
        s[tn] = 0
    T.clear(total)
    for k in T.serial(4):
        w[0] = W[k * 32 + tk]
        x[0] = X[tn, k * 32 + tk]
        total[0] += w[0] * x[0]
    T.atomic_add(s[tn], total[0])
    B[tn] = s[tn]
    """
    new = product(body, "T.Kernel(1, threads=(8, 32)) as bx")
    assert "w = T.alloc_ub([32]," in new  # an axis only for the threads whose values differ
    assert "T.reduce_sum(total, s, dim=1)" in new


def test_a_serial_sum_of_each_thread() -> None:
    """The products of all columns in a tile, and one reduction; loads of single elements are copies."""
    body = """
    tn = T.get_thread_binding(0)
    x = T.alloc_shared((8, 32), "float32")
    w = T.alloc_shared((32,), "float32")
    total = T.alloc_local((1,), "float32")
    T.clear(total)
    for b in T.serial(4):
        for k in T.serial(32):
            w[k] = W[b * 32 + k]
            x[tn, k] = X[tn, b * 32 + k]
        for k in T.serial(32):
            total[0] += w[k] * x[tn, k]
    B[tn] = total[0]
    """
    new = product(body, "T.Kernel(1, threads=8) as bx")
    assert "T.serial(32)" not in new
    assert "T.reduce_sum(x, total_part, dim=1)" in new


REFUSED = {
    "a shuffle": "B[bx, tx] = T.tvm_warp_shuffle(0, A[bx, tx], 0, 32, 32)",
    "a race": "B[bx, 0] = A[bx, tx]",
    "an addition by every thread": "s = T.alloc_shared((1,), 'float32')\ns[0] += 1.0\nB[bx, tx] = A[bx, tx] + s[0]",
    "an atomic addition by every thread": "T.atomic_add(B[bx, 0], 1.0)\nB[bx, tx] = A[bx, tx]",
    "copies by single threads": "o = T.alloc_local((4,), 'float32')\nT.copy(A[bx, tx:tx + 4], o)\nB[bx, tx] = o[0]",
    "a loop of its own length": "for k in T.serial(tx):\n    B[bx, k] = A[bx, k]",
    "a loop over the tile inside": "for i in T.Parallel(128):\n    B[bx, i] = A[bx, i] + tx",
    "an index that is used": "B[bx, tx] = A[bx, tx]\nT.call_extern('void', 'f', tx)",
    "a name of a branch": "i = 3\nif tx < 4:\n    i = tx\nB[bx, i] = A[bx, i]",
    "a name from the run before": "i = tx\nfor k in T.serial(2):\n    B[bx, i] = A[bx, i]\n    i = i + 1",
    "a name of a loop after it": "for k in T.serial(2):\n    i = tx + k\n    B[bx, i] = A[bx, i]\nB[bx, i] = A[bx, i]",
    "a base that changes": "base = 0\ni = base + tx\nbase = 1\nB[bx, i] = A[bx, i] + base",
    "a loaded name and a store to where it came from": "v = A[bx, tx]\nA[bx, 127 - tx] = 0.0\nB[bx, tx] = v",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_needs_more_of_a_thread_stays(body: str) -> None:
    text = gpu_file(PARAMS, TX + body, launch=ONE)
    result = result_of(text)
    assert result.new_text == text
    assert "TL184" in {d.code for d in result.diagnostics if d.severity == "error"}


@pytest.mark.parametrize(
    ("launch", "binding"),
    [
        ("T.Kernel(4, threads=(64, 2)) as bx", "tx = T.get_thread_binding(0)"),  # the other half would add again
        ("T.Kernel(4, threads=64) as bx", "tx = T.get_thread_binding(1)"),
        ("T.Kernel(4, threads=64) as bx", "tx = T.get_thread_binding(n)"),
    ],
)
def test_threads_without_a_name(launch: str, binding: str) -> None:
    text = gpu_file(PARAMS, f"{binding}\nT.atomic_add(B[bx, tx], A[bx, tx])", launch=launch)
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["refused"]


GEMV = 'A: T.Tensor((128,), "float32"), B: T.Tensor((32, 128), "float32"), C: T.Tensor((32,), "float32")'
VECTORS = """
tn = T.get_thread_binding(0)
tk = T.get_thread_binding(1)
a = T.alloc_local((8,), "float32")
b = T.alloc_local((8,), "float32")
total = T.alloc_local((1,), "float32")
T.clear(total)
for bk in T.serial(2):
    for k in T.vectorized(8):
        a[k] = A[bk * 64 + tk * 8 + k]
        b[k] = B[bn * 8 + tn, bk * 64 + tk * 8 + k]
    for k in T.serial(8):
        total[0] += a[k] * b[k]
"""
SHARED = """
s = T.alloc_shared((8,), "float32")
if tk == 0:
    s[tn] = 0
T.atomic_add(s[tn], total[0])
C[bn * 8 + tn] = s[tn]
"""
ALL_REDUCE = """
r = T.alloc_local((1,), "float32")
with T.attr(
    T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")]),
    "reduce_scope",
    T.reinterpret(T.uint64(0), dtype="handle"),
):
    T.evaluate(T.tvm_thread_allreduce(T.uint32(1), total[0], True, r[0], tk, dtype="handle"))
C[bn * 8 + tn] = r[0]
"""
BLOCKS = "T.Kernel(4, threads=(8, 8)) as bn"


def gemv(body: str) -> str:
    """Migrate a product of a matrix and a vector, compare; the new text."""
    new = migrated(gpu_file(GEMV, body, launch=BLOCKS))
    a, b = RNG.standard_normal(128).astype(np.float32), RNG.standard_normal((32, 128)).astype(np.float32)
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"A": a, "B": b}, reading=reading)
        np.testing.assert_allclose(found["C"], b.astype(np.float64) @ a, rtol=1e-4, atol=1e-4)
    return new


@pytest.mark.parametrize(
    "vectors",
    [
        VECTORS,
        VECTORS.replace("tk * 8 + k", "8 * tk + k"),
        VECTORS.replace("bk * 64 + tk * 8 + k", "k + tk * 8 + bk * 64"),
        VECTORS.replace("T.serial(8)", "range(8)").replace("T.vectorized(8)", "T.vectorized(0, 8)"),
        VECTORS.replace("T.clear(total)", "total[0] = 0"),
    ],
)
@pytest.mark.parametrize("end", [SHARED, ALL_REDUCE])
def test_threads_with_a_vector_of_elements_each(vectors: str, end: str) -> None:
    new = gemv(vectors + end)
    assert "T.copy(A[bk * 64], a)" in new  # all threads' elements at once
    assert "T.alloc_shared([8, 8 * 8], " in new


def test_a_sum_over_all_threads_of_one_dimension() -> None:
    body = (TX + "own = T.alloc_local((1,), 'float32')\nown[0] = A[bx, tx]\n" + ALL_REDUCE).replace("total", "own")
    body = body.replace("tk,", "tx,").replace("C[bn * 8 + tn] = r[0]", "B[bx, tx] = A[bx, tx] * r[0]")
    check(body, A * A.astype(np.float64).sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.clear(total)", "total[0] = 1"),  # counted once for each thread
        ("tk * 8 + k", "tk * 4 + k"),
        ("a[k] * b[k]", "a[k] * b[7 - k]"),
        ("    for k in T.serial(8):\n        total", "    if tk == 0:\n      for k in T.serial(8):\n        total"),
    ],
)
def test_threads_that_more_threads_would_not_replace(old: str, new: str) -> None:
    result = result_of(gpu_file(GEMV, VECTORS.replace(old, new) + SHARED, launch=BLOCKS))
    assert "8 * 8" not in (result.new_text or "")


def test_another_reduction_over_all_threads_is_refused() -> None:
    body = VECTORS + ALL_REDUCE.replace("x + y", "T.max(x, y)")
    assert {d.code for d in result_of(gpu_file(GEMV, body, launch=BLOCKS)).diagnostics} >= {"TL184"}
