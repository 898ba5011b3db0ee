"""Whole npuir kernels: which language a kernel is read in, its modes, the grid, the older spelling, Expert mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.kernels import load
from tl2npu.simulator.errors import SimulatorError, TraceError
from tl2npu.simulator.hazards.report import Report
from tl2npu.simulator.standin.session import Session

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILELANG_ASCEND_MODE", raising=False)


def halves(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float16)


PRODUCT = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1]{target})
def factory(M, N, K, bm=16, bn=32, bk=16):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, bn) * T.ceildiv(M, bm), is_npu=True) as (cid, _):
            by = cid // T.ceildiv(N, bn)
            bx = cid % T.ceildiv(N, bn)
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bk, bn), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C[by * bm, bx * bn])

    return main
"""


@pytest.mark.parametrize("target", [', target="npuir"', ""])
def test_a_product_with_the_target_stated_and_without(target: str) -> None:
    kernel = load(PRODUCT.format(target=target))["factory"](32, 64, 48)
    a, b = halves(32, 48), halves(48, 64)
    np.testing.assert_allclose(kernel(a, b), a.astype(np.float32) @ b.astype(np.float32), rtol=2e-3, atol=2e-3)


def test_another_target_does_not_know_these_operators() -> None:
    with pytest.raises(SimulatorError):
        load(PRODUCT.format(target=', target="ascendc"'))["factory"](32, 64, 48)


UNDECIDED = """
import tilelang
import tilelang.language as T

def factory(n):
    @T.prim_func
    def main(A: T.Tensor((4, n), "float32"), C: T.Tensor((4, n), "float16")):
        with T.Kernel({grid}, is_npu=True) as ({names}):
            a = T.alloc_shared((2, n), "float16")
            T.copy(A[{row} * 2, 0], a)
            T.copy(a, C[{row} * 2, 0])

    return main

def compiled(n, **options):
    return tilelang.compile(factory(n), out_idx=[-1], **options)
"""


def test_a_function_is_read_again_when_its_compilation_says_npuir() -> None:
    """The names used are those of both languages; a grid of two dimensions is not Ascend's, and an error there."""
    a = RNG.uniform(-1, 1, (4, 8)).astype(np.float32)
    one = load(UNDECIDED.format(grid="2", names="cid, _", row="cid"))["compiled"]
    np.testing.assert_array_equal(one(8, target="npuir")(a), a.astype(np.float16))
    two = load(UNDECIDED.format(grid="2, 1", names="bx, by, _", row="bx"))["compiled"]
    np.testing.assert_array_equal(two(8, target="npuir")(a), a.astype(np.float16))
    with pytest.raises(TraceError, match="exactly one block dimension"):
        two(8)


def test_a_function_is_read_again_with_the_names_it_had() -> None:
    """Each function of a loop keeps the numbers of its turn, whenever it is compiled."""
    text = """
import tilelang
import tilelang.language as T

def several():
    found = []
    for rows in (2, 4):
        @T.prim_func
        def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((rows, 8), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                a = T.alloc_shared((rows, 8), "float32")
                T.copy(A[0:rows, 0:8], a)
                T.copy(a, C)
        found.append(main)
    return [tilelang.compile(f, out_idx=[-1], target="npuir") for f in found]
"""
    a = RNG.uniform(-1, 1, (4, 8)).astype(np.float32)
    assert [kernel(a).shape for kernel in load(text)["several"]()] == [(2, 8), (4, 8)]


OLDER = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="npuir")
def factory(M, N, K, bm, bn):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32"),
             D: T.Tensor((M, N), "float32")):
        with T.Kernel(M // bm * (N // bn), is_npu=True) as (cid, _):
            bx = cid // (N // bn) * bm
            by = cid % (N // bn) * bn
            a = T.alloc_shared((bm, K), "float16")
            b = T.alloc_shared((K, bn), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            d = T.alloc_fragment((bm, bn), "float32")
            T.copy(A[bx, 0], a, {size}[bm, K])
            T.copy(B[0, by], b, {size}[K, bn])
            T.gemm(a, b, c, [bm, K, bn], initC=True)
            T.{exp}(c, d)
            T.copy(c, C[bx, by], {size}[bm, bn])
            T.copy(d, D[bx, by], {size}[bm, bn])

    return main
"""


@pytest.mark.parametrize(("size", "exp"), [("", "exp"), ("size=", "vexp")])
def test_the_older_spelling_and_the_present_one(size: str, exp: str) -> None:
    kernel = load(OLDER.format(size=size, exp=exp))["factory"](32, 32, 16, 16, 16)
    a, b = halves(32, 16), halves(16, 32)
    c, d = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernel(a, b, c, d)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(d, np.exp(expected), rtol=1e-3, atol=1e-3)


EXPERT = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="npuir")
def factory(M, N, K, bm, bn):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), W: T.Tensor((M, N), "float32"),
             D: T.Tensor((M, N), "float32")):
        with T.Kernel(M // bm * (N // bn), is_npu=True) as (cid, vid):
            bx = cid // (N // bn) * bm
            by = cid % (N // bn) * bn
            with T.Scope("Cube"):
                a = T.alloc_L1((bm, K), "float16")
                b = T.alloc_L1((K, bn), "float16")
                c = T.alloc_L0C((bm, bn), "float32")
                T.load_nd2nz(A[bx, 0], a, [bm, K])
                T.load_nd2nz(B[0, by], b, [K, bn])
                T.gemm(a, b, c, [bm, K, bn], initC=True)
                with T.rs("PIPE_FIX"):
                    T.store_fixpipe(c, W[bx, by], size=[bm, bn], enable_nz2nd=True)
                    {sets}
            with T.Scope("Vector"):
                half = bm // 2
                d = T.alloc_ub((half, bn), "float32")
                with T.rs("PIPE_MTE2"):
                    {waits}
                    T.copy(W[bx + vid * half, by], d, size=[half, bn])
                T.vexp(d, d)
                T.copy(d, D[bx + vid * half, by], size=[half, bn])

    return main
"""


def expert(sets: str, waits: str) -> tuple[np.ndarray, np.ndarray, Report]:
    report = Report()
    text = EXPERT.format(sets=sets, waits=waits)
    kernel = load(text, Session(watch=report.observer))["factory"](32, 32, 16, 16, 16)
    a, b = halves(32, 16), halves(16, 32)
    w, d = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernel(a, b, w, d)
    return d, np.exp(a.astype(np.float32) @ b.astype(np.float32)), report


def test_expert_mode_hands_over_from_the_cube_core_to_both_vector_cores() -> None:
    found, expected, report = expert("T.sync_block_set(0)", "T.sync_block_wait(0)")
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    assert not report.hazards


def test_expert_mode_without_its_flags_is_a_hazard() -> None:
    *_, report = expert("pass", "pass")
    assert "RAW" in {hazard.kind for hazard in report.hazards}


def test_the_environment_decides_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Expert mode a product lands in the cube core's memory, which a vector operator cannot reach."""
    text = OLDER.format(size="size=", exp="vexp")
    a, b = halves(32, 16), halves(16, 32)

    def run() -> Any:
        kernel = load(text)["factory"](32, 32, 16, 16, 16)
        kernel(a, b, np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32))

    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Developer")
    run()
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Expert")
    with pytest.raises(SimulatorError):
        run()


def test_a_grid_has_one_or_two_dimensions_and_no_threads() -> None:
    text = UNDECIDED.format(grid="2, 1, 1", names="bx, by, bz, _", row="bx")
    with pytest.raises(TraceError, match="block dimension"):
        load(text)["compiled"](8, target="npuir")
    with pytest.raises(TraceError, match="no threads"):
        load(PRODUCT.format(target=', target="npuir"').replace("is_npu=True", "threads=2, is_npu=True"))["factory"](
            32, 64, 48
        )


def test_a_kernel_for_developer_mode_without_the_environment_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = OLDER.format(size="size=", exp="vexp").replace("main", "quite_alone")
    kernel = load(text)["factory"](32, 32, 16, 16, 16)
    assert "TILELANG_ASCEND_MODE is not set: quite_alone would be compiled in Expert mode" in capsys.readouterr().err
    d = np.zeros((32, 32), np.float32)
    a, b = halves(32, 16), halves(16, 32)
    kernel(a, b, np.zeros((32, 32), np.float32), d)
    np.testing.assert_allclose(d, np.exp(a.astype(np.float32) @ b.astype(np.float32)), rtol=1e-3, atol=1e-3)


BARRIER = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="npuir")
def factory():
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), W: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, _):
            a = T.alloc_ub((1, 8), "float32")
            T.copy(A[cid, 0], a, size=[1, 8])
            T.copy(a, W[cid, 0], size=[1, 8])
            with T.rs("PIPE_MTE3"):
                {barrier}
            T.copy(W[3 - cid, 0], a, size=[1, 8])
            T.copy(a, C[cid, 0], size=[1, 8])

    return main
"""


@pytest.mark.parametrize(("barrier", "ordered"), [("T.block_barrier(3)", True), ("pass", False)])
def test_blocks_meet_at_a_barrier(barrier: str, ordered: bool) -> None:
    report = Report()
    kernel = load(BARRIER.format(barrier=barrier), Session(watch=report.observer))["factory"]()
    a = RNG.uniform(-1, 1, (4, 8)).astype(np.float32)
    w, c = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    kernel(a, w, c)
    assert (not report.hazards) == ordered
    if ordered:
        np.testing.assert_array_equal(c, a[::-1])


def test_a_column_of_numbers_is_copied_as_a_row() -> None:
    """``size=[1, n]`` of a tile ``[n, 1]``: its elements one after the other."""
    text = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="npuir", out_idx=[-1])
def factory(rows, form):
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), C: T.Tensor((2, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((8, 16), "float32")
            s = T.alloc_shared((8, 1), "float32")
            T.copy(A, a)
            T.reduce_sum(a, s, dim=1)
            if form == "size":
                T.copy(s, C[1, 0], size=[1, rows])
            else:
                T.copy(s, C[1:2, 0:rows])

    return main
"""
    a = RNG.uniform(-1, 1, (8, 16)).astype(np.float32)
    for rows, form in ((8, "size"), (8, "slice"), (5, "size"), (5, "slice")):
        found = load(text)["factory"](rows, form)(a)
        np.testing.assert_allclose(found[1, :rows], a.sum(axis=1)[:rows], rtol=1e-5, atol=1e-6)


def test_a_tensor_that_is_not_touched_may_be_none() -> None:
    text = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="npuir")
def factory(both):
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((4, 8), "float32")
            T.copy(A, a)
            if both:
                T.copy(a, B)
            T.copy(a, C)

    return main
"""
    a, c = RNG.uniform(-1, 1, (4, 8)).astype(np.float32), np.zeros((4, 8), np.float32)
    load(text)["factory"](False)(a, None, c)
    np.testing.assert_array_equal(a, c)
    with pytest.raises(TypeError, match="B of main has to be a tensor, not NoneType"):
        load(text)["factory"](True)(a, None, c)
    with pytest.raises(ValueError, match="Expected 3 inputs"):
        load(text)["factory"](True)(a, a, c, c)


PIPES = """
import tilelang
import tilelang.language as T

KEY = tilelang.PassConfigKey.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC

@tilelang.jit(target="npuir", out_idx=[-1], pass_configs={{KEY: {manual}}})
def factory():
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), C: T.Tensor((8, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_ub((4, 64), "float32")
            with T.rs("PIPE_MTE2"):
                T.copy(A[cid * 4, 0], a, size=[4, 64])
                T.set_flag("PIPE_V", 0)
            with T.rs("PIPE_V"):
                {wait}
                T.vexp(a, a)
                T.set_flag("PIPE_MTE3", 0)
            with T.rs("PIPE_MTE3"):
                T.wait_flag("PIPE_V", 0)
                T.copy(a, C[cid * 4, 0], size=[4, 64])

    return main
"""


@pytest.mark.parametrize(
    ("manual", "wait", "kinds"),
    [
        (True, 'T.wait_flag("PIPE_MTE2", 0)', set()),
        (True, "pass", {"RAW", "unpaired-flag", "WAW"}),
        (False, "pass", {"unpaired-flag"}),
    ],
)
def test_flags_between_pipes_count_where_the_compiler_adds_none(manual: bool, wait: str, kinds: set[str]) -> None:
    report = Report()
    kernel = load(PIPES.format(manual=manual, wait=wait), Session(watch=report.observer))["factory"]()
    a = RNG.uniform(-1, 1, (8, 64)).astype(np.float32)
    np.testing.assert_allclose(kernel(a), np.exp(a), rtol=1e-6)
    assert {hazard.kind for hazard in report.hazards} == kinds


def test_a_pipe_that_does_not_exist_is_refused() -> None:
    text = PIPES.format(manual=True, wait='T.wait_flag("PIPE_MTE9", 0)')
    with pytest.raises(TraceError, match="unknown pipe `PIPE_MTE9`"):
        load(text, Session())["factory"]()


def test_a_script_asks_for_the_cores_of_the_device() -> None:
    text = """
from tilelang.utils import NPUUtils

cores = NPUUtils.get().get_aicore_num(), NPUUtils.get().get_aivector_core_num()
"""
    assert load(text)["cores"] == (24, 48)


def test_the_branch_has_no_eager_style() -> None:
    text = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="npuir")
def twice(A):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    C = T.empty((M, N), "float32")
    with T.Kernel(1, is_npu=True) as (cid, _):
        a = T.alloc_shared((M, N), "float32")
        T.copy(A, a)
        T.vadd(a, a, a)
        T.copy(a, C)
    return C
"""
    with pytest.raises(TraceError, match="no eager style"):
        load(text)["twice"](np.zeros((4, 8), np.float32))
