"""Variables of the iterations of a ``T.Parallel``: on a GPU they are registers of the thread, so each has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 6)).astype(np.float32)


@pytest.fixture(autouse=True)
def standin() -> Iterator[None]:
    with installed(Session()):
        global T, tilelang
        import tilelang
        import tilelang.language as T

        yield


T: Any
tilelang: Any


def run(func: Any, *arrays: np.ndarray) -> Any:
    return tilelang.compile(func, out_idx=[1])(*arrays)


@pytest.mark.parametrize("threads", [{"threads": 32}, {}])
def test_branches_assign_it(threads: dict[str, int]) -> None:
    """Constants in both branches: no write differs from another within a branch, and yet the iterations differ."""

    @T.prim_func
    def main(A: T.Tensor((4, 6), "float32"), Y: T.Tensor((4, 6), "float32")):
        with T.Kernel(1, **threads):
            for i, j in T.Parallel(4, 6):
                sign = T.alloc_var("float32")
                if A[i, j] > 0:
                    sign = 1.0
                else:
                    sign = -3.0
                Y[i, j] = 2 * sign

    np.testing.assert_array_equal(run(main, X), np.where(X > 0, 2, -6).astype(np.float32))


def test_each_iteration_adds_to_its_own() -> None:
    """An initial value, a serial loop inside, an assignment with an index, and a nest of two."""

    @T.prim_func
    def main(A: T.Tensor((4, 6), "float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                total = T.alloc_var("float32", init=1.0)
                for j in T.serial(6):
                    total = T.max(total, A[i, j])
                for _ in T.Parallel(1):
                    twice = T.alloc_var("float32", 0.0)
                    twice[0] += 2 * total[0]
                    Y[i] = twice

    np.testing.assert_array_equal(run(main, X), 2 * np.maximum(X.max(1), np.float32(1)))


def test_one_outside_is_shared() -> None:
    """A variable of the block is one variable, also in a ``T.Parallel``."""

    @T.prim_func
    def main(A: T.Tensor((4, 6), "float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            first = T.alloc_var("float32")
            first = A[0, 0]
            for i in T.Parallel(4):
                Y[i] = first

    np.testing.assert_array_equal(run(main, X), np.full(4, X[0, 0]))


def test_an_extent_known_only_at_run_time_is_refused() -> None:
    with pytest.raises(UnsupportedOperator, match=r"alloc_var in a T.Parallel whose extent is not a constant"):

        @T.prim_func
        def main(A: T.Tensor((4, 6), "float32"), Y: T.Tensor((4,), "float32"), n: T.int32):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(n):
                    own = T.alloc_var("float32")
                    own = A[i, 0]
                    Y[i] = own
