"""GPU operators one by one, against NumPy written out here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def standin() -> Iterator[None]:
    with installed(Session()):
        global T, tilelang
        import tilelang
        import tilelang.language as T

        yield


T: Any
tilelang: Any


def run(func: Any, *arrays: np.ndarray, out: Any = None) -> Any:
    return tilelang.compile(func, out_idx=out)(*arrays)


def test_atomic_add_of_many_iterations_on_one_element() -> None:
    @T.prim_func
    def main(X: T.Tensor((40,), "int32"), Y: T.Tensor((4,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(20):
                if X[bx * 20 + i] > 0:
                    T.atomic_add(Y[X[bx * 20 + i] % 4], X[bx * 20 + i])

    x = RNG.integers(-9, 9, 40).astype(np.int32)
    y = np.ones(4, np.int32)
    expected = y.copy()
    for value in x[x > 0]:
        expected[value % 4] += value
    run(main, x, y)
    np.testing.assert_array_equal(y, expected)


def test_return_prev_gives_each_iteration_a_number_of_its_own() -> None:
    @T.prim_func
    def main(X: T.Tensor((32,), "float32"), Count: T.Tensor((1,), "int32"), Y: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(32):
                if X[i] > 0:
                    place = T.atomic_add(Count[0], 1, return_prev=True)
                    Y[place] = X[i]

    x = RNG.standard_normal(32).astype(np.float32)
    count, y = np.zeros(1, np.int32), np.zeros(32, np.float32)
    run(main, x, count, y)
    assert count[0] == (x > 0).sum()
    np.testing.assert_array_equal(np.sort(y[: count[0]]), np.sort(x[x > 0]))
    assert not y[count[0] :].any()


def test_return_prev_outside_of_a_parallel_loop() -> None:
    @T.prim_func
    def main(Count: T.Tensor((1,), "int32"), Y: T.Tensor((3,), "int32")):
        with T.Kernel(3, threads=32) as bx:
            Y[bx] = T.atomic_max(Count[0], bx * 10, return_prev=True)

    count, y = np.full(1, 5, np.int32), np.zeros(3, np.int32)
    run(main, count, y)
    assert count.tolist() == [20]
    assert y.tolist() == [5, 5, 10]


@pytest.mark.parametrize("width", [2, 4])
def test_several_elements_at_once(width: int) -> None:
    add = T.atomic_addx2 if width == 2 else T.atomic_addx4

    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((8, 16), "float32")):
        with T.Kernel(2, threads=32) as _:
            for i, j in T.Parallel(8, 16 // width):
                add(Y[i, j * width], X[i, j * width])

    x, y = RNG.standard_normal((8, 16)).astype(np.float32), np.ones((8, 16), np.float32)
    run(main, x, y)
    np.testing.assert_allclose(y, 1 + x + x, rtol=1e-6)


def test_atomic_of_a_tile_at_the_edge_of_a_tensor() -> None:
    @T.prim_func
    def main(Y: T.Tensor((20, 10), "float32")):
        with T.Kernel(2, threads=32) as bx:
            tile = T.alloc_shared((16, 16), "float32")
            T.fill(tile, 2)
            T.atomic_add(Y[bx * 16, 0], tile)
            T.atomic_max(Y[bx * 16 : bx * 16 + 2, 0:2], T.float32(9))

    y = np.zeros((20, 10), np.float32)
    run(main, y)
    expected = np.full((20, 10), 2, np.float32)
    expected[[0, 1, 16, 17], :2] = 9
    np.testing.assert_array_equal(y, expected)


def test_reducer_adds_the_contributions_of_all_iterations() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((8,), "float32"), Z: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32) as _:
            total = T.alloc_reducer((8,), "float32", op="sum")
            largest = T.alloc_reducer((8,), "float32", op="max")
            out = T.alloc_fragment((8,), "float32")
            T.reducer_init(total, 5)
            T.reducer_init(largest)
            for i, j in T.Parallel(8, 16):
                T.reducer_update(total[i], X[i, j])
                T.reducer_update(largest[i], X[i, j])
            T.finalize_reducer(total, out)
            T.copy(out, Y)
            T.finalize_reducer(largest, out)
            T.copy(out, Z)

    x = RNG.standard_normal((8, 16)).astype(np.float32)
    y, z = run(main, x, out=[1, 2])
    np.testing.assert_allclose(y, 5 + x.sum(1), rtol=1e-5)
    np.testing.assert_array_equal(z, x.max(1))


def test_older_reducer_is_updated_by_assignment() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32) as _:
            total = T.alloc_reducer((8,), "float32", op="sum", replication="all")
            T.clear(total)
            for i, j in T.Parallel(8, 16):
                total[i] += X[i, j]
            T.finalize_reducer(total)
            T.copy(total, Y)

    x = RNG.standard_normal((8, 16)).astype(np.float32)
    np.testing.assert_allclose(run(main, x, out=1), x.sum(1), rtol=1e-5)


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_bit_reductions(kind: str) -> None:
    reduce = {"bitand": T.reduce_bitand, "bitor": T.reduce_bitor, "bitxor": T.reduce_bitxor}[kind]
    function = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[kind]

    @T.prim_func
    def main(X: T.Tensor((4, 8), "int32"), Y: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_fragment((4, 8), "int32")
            out = T.alloc_fragment((4,), "int32")
            T.copy(X, tile)
            T.copy(Y, out)
            reduce(tile, out, dim=1, clear=False)
            T.copy(out, Y)

    x, y = (RNG.integers(0, 99, shape).astype(np.int32) for shape in ((4, 8), (4,)))
    expected = function(function.reduce(x, axis=1), y)
    run(main, x, y)
    np.testing.assert_array_equal(y, expected)


def test_running_maximum() -> None:
    @T.prim_func
    def main(X: T.Tensor((6, 9), "float32"), Y: T.Tensor((6, 9), "float32")):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((6, 9), "float32")
            T.copy(X, tile)
            T.cummax(tile, dim=1, reverse=True)
            T.copy(tile, Y)

    x = RNG.standard_normal((6, 9)).astype(np.float32)
    np.testing.assert_array_equal(run(main, x, out=1), np.maximum.accumulate(x[:, ::-1], axis=1)[:, ::-1])


def test_patches_of_an_image() -> None:
    n, h, w, c, k, pad = 2, 5, 6, 4, 3, 1

    @T.prim_func
    def main(X: T.Tensor((n, h, w, c), "float32"), Y: T.Tensor((n * h * w, k * k * c), "float32")):
        with T.Kernel(T.ceildiv(n * h * w, 16), 3, threads=32) as (bx, by):
            tile = T.alloc_shared((16, 12), "float32")
            T.im2col(X, tile, bx, by, k, 1, 1, pad)
            T.copy(tile, Y[bx * 16, by * 12])

    x = RNG.standard_normal((n, h, w, c)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows = [padded[b, i : i + k, j : j + k].reshape(-1) for b in range(n) for i in range(h) for j in range(w)]
    np.testing.assert_array_equal(run(main, x, out=1), np.stack(rows))


def test_loads_and_stores_outside_of_a_tensor() -> None:
    @T.prim_func
    def main(X: T.Tensor((10,), "float32"), Pick: T.Tensor((16,), "int32"), Y: T.Tensor((12,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(16):
                Y[i] = X[Pick[i]] + 1

    x = RNG.standard_normal(10).astype(np.float32)
    pick = RNG.integers(-5, 15, 16).astype(np.int32)
    expected = [1 + (x[p] if 0 <= p < 10 else np.float32(0)) for p in pick[:12]]
    np.testing.assert_array_equal(run(main, x, pick, out=2), expected)


def test_without_the_compilers_checks_the_access_is_an_error() -> None:
    @T.prim_func
    def main(X: T.Tensor((10,), "float32"), Y: T.Tensor((12,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(12):
                Y[i] = X[i]

    kernel = tilelang.compile(main, out_idx=1, pass_configs={"tl.disable_safe_memory_legalize": True})
    with pytest.raises(SimulatorError, match=r"out-of-bounds access: X"):
        kernel(np.zeros(10, np.float32))


def test_memory_that_all_blocks_and_launches_share() -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 8), "float32"), Y: T.Tensor((8,), "float32")):
        part = T.alloc_global((4, 8), "float32")
        with T.Kernel(4, threads=32) as bx:
            for j in T.Parallel(8):
                part[bx, j] = X[bx, j] * 2
        with T.Kernel(1, threads=32) as _:
            for j in T.Parallel(8):
                Y[j] = part[0, j] + part[1, j] + part[2, j] + part[3, j]

    x = RNG.standard_normal((4, 8)).astype(np.float32)
    np.testing.assert_allclose(run(main, x, out=1), 2 * x.sum(0), rtol=1e-5)


def test_layout_of_a_global_tensor_is_what_the_host_sees() -> None:
    @T.prim_func
    def main(X: T.Tensor((3, 5), "float32"), Y: T.Tensor((3, 5), "float32")):
        with T.Kernel(1, threads=32) as _:
            T.annotate_layout({Y: T.Layout(Y.shape, lambda i, j: [j, i])})
            for i, j in T.Parallel(3, 5):
                Y[i, j] = X[i, j]

    x = RNG.standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(run(main, x, out=1), x.T.reshape(3, 5))


def test_another_shape_of_a_tensors_memory() -> None:
    @T.prim_func
    def main(X: T.Tensor((4, 6), "float32"), Y: T.Tensor((24,), "float32")):
        with T.Kernel(1, threads=32) as _:
            flat = T.Tensor((24,), "float32", X.data)
            for i in T.Parallel(24):
                Y[i] = flat[i]

    x = RNG.standard_normal((4, 6)).astype(np.float32)
    np.testing.assert_array_equal(run(main, x, out=1), x.reshape(-1))


def test_products_check_their_extents() -> None:
    @T.prim_func
    def main(X: T.Tensor((32, 16), "float16"), Y: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32) as _:
            a = T.alloc_shared((32, 16), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(X, a)
            T.clear(c)
            T.gemm(a, a, c)
            T.copy(c, Y)

    with pytest.raises(SimulatorError, match="the extents do not agree"):
        run(main, np.zeros((32, 16), np.float16), out=1)


@pytest.mark.parametrize(
    "name",
    [
        "get_thread_binding",
        "mbarrier_arrive",
        "shfl_xor",
        "tma_load",
        "call_extern",
        "rng_init",
        "gemm_sp",
        "alloc_tmem",
    ],
)
def test_what_is_refused_is_named(name: str) -> None:
    function = getattr(T, name)

    def body() -> None:
        function(0)

    with pytest.raises(UnsupportedOperator, match=rf"T\.{name}: "):

        @T.prim_func
        def main(X: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32) as _:
                body()


def test_device_assert() -> None:
    @T.prim_func
    def main(X: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(4):
                T.device_assert(X[i] > 0)

    run(main, np.ones(4, np.int32))
    with pytest.raises(SimulatorError, match="device assert failed"):
        run(main, np.arange(4, dtype=np.int32))


def test_a_product_of_a_warp_group_is_complete_when_its_statement_ends() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128) as _:
            a, b = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.warpgroup_fence_operand(c)
            T.warpgroup_arrive()
            T.wgmma_gemm(a, b, c)
            T.warpgroup_commit_batch()
            T.wait_wgmma(1)
            T.warpgroup_wait(0)
            T.copy(c, C)

    a, b = (RNG.standard_normal((32, 32)).astype(np.float16) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    run(main, a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_an_asynchronous_copy_is_complete_when_its_statement_ends() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((32, 32), "float16")
            T.async_copy(A, a)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.copy(a, C)

    a, c = RNG.standard_normal((32, 32)).astype(np.float16), np.zeros((32, 32), np.float16)
    run(main, a, c)
    np.testing.assert_array_equal(a, c)
