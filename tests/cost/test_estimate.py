"""The cost model against figures from outside of it: PTO-ISA's simulator, published times, and sums by hand."""

from __future__ import annotations

import textwrap

import pytest

from tl2npu.cost.estimate import NoRates
from tl2npu.cost.file import estimates
from tl2npu.costs import Estimate
from tl2npu.options import Options

A2 = Options(device="A2")
GEMM = """
import tilelang
import tilelang.language as T

PASS_CONFIGS = {{"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}}

@tilelang.jit(out_idx=[-1], pass_configs=PASS_CONFIGS)
def matmul(M, N, K, bm, bn, slab, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, bm) * T.ceildiv(N, bn), is_npu=True) as (cid, _):
            left = T.alloc_L1((bm, slab), dtype)
            right = T.alloc_L1((slab, bn), dtype)
            out = T.alloc_L0C((bm, bn), "float")
            for k in T.serial(T.ceildiv(K, slab)):
                T.copy(A[cid // T.ceildiv(N, bn) * bm, k * slab], left)
                T.copy(B[k * slab, cid % T.ceildiv(N, bn) * bn], right)
                T.gemm_v0(left, right, out, init=(k == 0))
            T.copy(out, C[cid // T.ceildiv(N, bn) * bm, cid % T.ceildiv(N, bn) * bn])

    return main

matmul({sizes})
"""
VECTOR = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[1], pass_configs={{"tl.ascend_auto_sync": True}})
def make(N=256):
    @T.prim_func
    def main(A: T.Tensor((N, 64), "float32"), B: T.Tensor((N, 64), "float32")):
        with T.Kernel(N // 64, threads={threads}, is_npu=True) as (cid):
            x = T.alloc_ub((64, 64), "float32")
            y = T.alloc_ub((64, 64), "float32")
            r = T.alloc_ub((64,), "float32")
            T.copy(A[cid * 64, 0], x)
{body}
            T.copy(y, B[cid * 64, 0])

    return main
"""


def one(text: str, **sizes: int) -> Estimate:
    """The only estimate of a text."""
    (found,) = estimates(text, "kernel.py", A2, sizes)
    return found


def cycles(body: str, threads: int = 1) -> float:
    """Of the vector pipe, for statements on tiles of 64 x 64 and a vector of their rows."""
    made = one(VECTOR.format(body=textwrap.indent(textwrap.dedent(body).strip(), " " * 12), threads=threads))
    return next((load.cycles for load in made.loads if load.pipe == "vector"), 0.0)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_one_by_one_are_as_many_bytes_as_all_at_once(threads: int) -> None:
    """What starting a transfer takes is not counted (TL952 tells of it)."""
    rows = "            for i in T.serial(64):\n                T.copy(A[cid * 64 + i, 0:64], x[i, :])\n"
    whole = VECTOR.format(body="", threads=threads)
    apart = whole.replace("            T.copy(A[cid * 64, 0], x)\n", rows)
    assert [load.cycles for load in one(apart).loads] == pytest.approx([load.cycles for load in one(whole).loads])


@pytest.mark.parametrize(
    ("sizes", "total", "pipes"),
    [
        ("1024, 1024, 1024, 128, 256, 128", 25026, (10032, 5136, 8240, 1614)),
        ("1024, 1024, 1024, 128, 256, 64", 25090, (10032, 5152, 8288, 1614)),
        ("1024, 1024, 1024, 64, 64, 64", 6222, (3328, 1568, 1120, 202)),
    ],
)
def test_a_product_agrees_with_the_simulator_of_pto_isa(sizes: str, total: int, pipes: tuple[int, ...]) -> None:
    """Cycles of its perf-sim, run on what the real compiler made of the same kernel."""
    found = one(GEMM.format(sizes=sizes))
    assert found.serial == pytest.approx(total, rel=0.01)
    assert [load.cycles for load in found.loads] == pytest.approx(pipes, rel=0.03)
    assert found.expected == found.serial
    assert found.bound == "GM to L1"


@pytest.mark.parametrize(
    ("size", "cores", "overlaps", "published"),
    [
        (8192, 20, False, 10182.0),  # Developer mode, tilelang-ascend #1261
        (8192, 20, True, 4276.0),  # Expert mode, double buffered, the same
        (8192, 24, True, 3900.0),  # issue 79
        (6144, 24, True, 1506.0),  # PTO-ISA's own kernel on an A3
    ],
)
def test_large_products_agree_with_published_times(size: int, cores: int, overlaps: bool, published: float) -> None:
    (found,) = estimates(GEMM.format(sizes=f"{size}, {size}, {size}, 128, 256, 128"), "kernel.py", A2, {}, cores)
    assert found.rounds is not None
    cycles = found.overlapped if overlaps else found.serial
    assert cycles * found.rounds / found.frequency * 1e6 == pytest.approx(published, rel=0.06)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i, j in T.Parallel(64, 64):\n    y[i, j] = x[i, j] + y[i, j]", 24 + 2 * 64),
        ("for i, j in T.Parallel(64, 64):\n    y[i, j] = x[i, j] * 2.0", 25 + 64),
        ("for i, j in T.Parallel(64, 64):\n    y[i, j] = T.exp(x[i, j])", 31 + 2 * 64),
        ("for i, j in T.Parallel(64, 64):\n    y[i, j] = x[i, j] / r[i]", 64 * (31 + 4)),
        ("for i, j in T.Parallel(64, 64):\n    y[i, j] = x[i, j] - r[i]", 64 * (25 + 1)),
        ("for k in T.serial(3):\n    T.tile.exp(y, x)", 3 * (31 + 2 * 64)),
        ("T.reduce_max(x, r, dim=-1)", 45 + 64 * 7),
        ("for k in T.serial(64):\n    T.tile.add(y[k, :], x[k, :], y[k, :])", 64 * (24 + 2)),
        ("if r[0] > 0:\n    T.tile.exp(y, x)\nelse:\n    T.tile.add(y, x, y)", 31 + 2 * 64),
    ],
)
def test_vector_instructions_cost_their_start_and_256_bytes_at_a_time(body: str, expected: float) -> None:
    """Summed by hand from the measured instructions; a row of 64 float32 numbers is 256 bytes."""
    assert cycles(body) == expected


@pytest.mark.parametrize("turned", [False, True])
def test_an_arm_that_only_fills_is_never_taken(turned: bool) -> None:
    """A guard of a load holds nearly always; the filling of what lies outside is slower than the load."""
    arms = ["T.tile.abs(y, x)", "T.tile.fill(y, 0.0)"]
    first, second = reversed(arms) if turned else arms
    assert cycles(f"if r[0] > 0.0:\n    {first}\nelse:\n    {second}\n") == 25 + 64
    assert cycles("if r[0] > 0.0:\n    T.tile.fill(y, 0.0)\n    T.tile.fill(y, 1.0)\n") == 2 * (25 + 64)
    both = "if r[0] > 0.0:\n    T.tile.fill(y, 0.0)\nelse:\n    T.tile.fill(y, 1.0)\n    T.tile.fill(y, 0.0)\n"
    assert cycles(both) == 2 * (25 + 64)


def test_two_vector_cores_share_the_rows() -> None:
    body = "for i, j in T.Parallel(64, 64):\n    y[i, j] = x[i, j] * 2.0"
    assert cycles(body, threads=2) == 25 + 32
    rows = "for i, j in T.Parallel(64, 64):\n    y[i, j] = x[i, j] - r[i]"
    assert cycles(rows, threads=2) == 32 * (25 + 1)


@pytest.mark.parametrize(
    ("barrier", "waits"),
    [("T.barrier_all()", True), ('T.pipe_barrier("all")', True), ('T.pipe_barrier("mte2")', False), ("pass", False)],
)
@pytest.mark.parametrize("product", ["gemm_v0", "mma"])
def test_by_hand_the_pipes_wait_where_a_barrier_stops_all_or_a_product_does(
    barrier: str, waits: bool, product: str
) -> None:
    """``gemm_v0`` waits for the loads before it, and the loads and stores behind it wait for it (``common.h``)."""
    text = GEMM.format(sizes="1024, 1024, 1024, 64, 64, 64").replace(", pass_configs=PASS_CONFIGS", "")
    head, body = text.split('            out = T.alloc_L0C((bm, bn), "float")\n')
    scoped = head + '            out = T.alloc_L0C((bm, bn), "float")\n            with T.Scope("C"):\n'
    scoped += textwrap.indent(body.split("\n    return")[0], "    ") + "\n    return" + body.split("\n    return")[1]
    scoped = scoped.replace("    T.copy(A[", f"    {barrier}\n                    T.copy(A[")
    found = one(scoped.replace("T.gemm_v0", f"T.{product}"))
    waits = waits or product == "gemm_v0"
    assert found.waits is waits
    assert found.expected == (found.serial if waits else found.overlapped)


@pytest.mark.parametrize(
    ("condition", "turns"),
    [
        ("k < 7", 7),
        ("k == 0", 1),
        ("k % 2 == 0", 4),
        ("T.And(k > 1, k < 4)", 2),
        ("k + 1 < 1024 // 128", 7),
        ("k >= 0", 8),
        ("k > 7", 0),
        ("k < T.ceildiv(1024, 128) - 1", 7),
        ("r[0] > 0.0", 8),  # depends on data: counts always
    ],
)
def test_a_condition_on_the_index_of_a_loop_counts_as_often_as_it_holds(condition: str, turns: int) -> None:
    add, exp = 24 + 2 * 64, 31 + 2 * 64
    body = f"for k in T.serial(8):\n    if {condition}:\n        T.tile.exp(y, x)\n"
    assert cycles(body) == turns * exp
    if "r[" not in condition:
        assert cycles(f"{body}    else:\n        T.tile.add(y, x, y)\n") == turns * exp + (8 - turns) * add


def test_bytes_that_are_moved() -> None:
    found = one(VECTOR.format(body="            T.tile.exp(y, x)", threads=1))
    moved = {load.pipe: load.size for load in found.loads}
    assert (moved["GM to UB"], moved["UB to GM"]) == (64 * 64 * 4, 64 * 64 * 4)
    assert (found.blocks, found.rounds, found.cores) == (4, 1, 24)
    assert {name: need for name, need, _ in found.filled}["UB"] == 2 * 64 * 64 * 4


def test_a_size_that_nobody_gives_is_said() -> None:
    text = GEMM.format(sizes="").replace("matmul()\n", "")
    found = one(text)
    assert found.microseconds is None
    assert any("is not known" in said for said in found.unknown)
    given = one(text, M=1024, N=1024, K=1024, bm=64, bn=64, slab=64)
    assert given.expected == pytest.approx(6222, rel=0.01)
    assert not given.unknown


def test_nothing_is_said_of_a_device_without_rates() -> None:
    with pytest.raises(NoRates, match="A5"):
        estimates(GEMM.format(sizes="64, 64, 64, 64, 64, 64"), "kernel.py", Options(device="A5"), {})


@pytest.mark.parametrize("wave", ["24", "wave_size=24"])
def test_each_block_does_its_share_of_the_tasks(wave: str) -> None:
    """32 tasks in waves of 24 are two turns: twice the product of one block."""
    single = one(GEMM.format(sizes="1024, 1024, 1024, 128, 256, 128")).expected
    tasks = "T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)], " + wave + ", index=cid)"
    if "=" not in wave:
        tasks = tasks.replace("index=cid", "cid")
    text = GEMM.format(sizes="1024, 1024, 1024, 128, 256, 128")
    loop, store = text.index("            for k in"), text.index("            T.copy(out")
    body = textwrap.indent(text[loop : text.index("\n", store) + 1], "    ")
    text = text[:loop] + f"            for bx, by in {tasks}:\n" + body + text[text.index("\n", store) + 1 :]
    assert one(text).expected == pytest.approx(2 * single)
