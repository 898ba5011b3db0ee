"""Whole kernels in the algebraic and the structure mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.kernels import load
from tl2npu.simulator.arithmetic.algebraic import Algebraic
from tl2npu.simulator.arithmetic.structure import Structure
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.standin.session import Session

GEMM = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def factory(block, order=1, skip=0, scale=1.0):
    @T.prim_func
    def main(A: T.Tensor((32, 48), "float16"), B: T.Tensor((48, 16), "float16"), C: T.Tensor((32, 16), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((16, block), "float16")
            b = T.alloc_shared((block, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in T.serial(48 // block - skip):
                at = (k if order > 0 else 48 // block - 1 - k) * block
                T.copy(A[bx * 16, at], a)
                T.copy(B[at, 0], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(16, 16):
                c[i, j] = T.max(c[i, j] * scale, 0.0)
            T.copy(c, C[bx * 16, 0])
    return main
"""

STEPS = """
import tilelang
import tilelang.language as T

@tilelang.jit
def factory():
    @T.prim_func
    def main(X: T.Tensor((8,), "float32"), N: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_fragment((8,), "float32")
            n = T.alloc_fragment((8,), "int32")
            T.copy(X, x)
            T.copy(N, n)
            for i in T.Parallel(8):
                if n[i] > 3:
                    x[i] = T.cast(n[i], "float32") * 2.0 + 1.0
            T.copy(x, X)
    return main
"""


def product(session: Session, **arguments: Any) -> np.ndarray:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((32, 48)).astype(np.float16), random.standard_normal((48, 16)).astype(np.float16)
    result: np.ndarray = load(GEMM, session)["factory"](**arguments)(a, b)
    return result


def test_tiles_and_order_do_not_matter() -> None:
    first = product(Session(arithmetic=Algebraic()), block=16)
    for arguments in ({"block": 48}, {"block": 8, "order": -1}):
        np.testing.assert_array_equal(product(Session(arithmetic=Algebraic()), **arguments), first)


@pytest.mark.parametrize("arguments", [{"block": 8, "skip": 1}, {"block": 16, "scale": 1.0001}])
def test_a_lost_tile_and_a_wrong_factor_show(arguments: dict[str, Any]) -> None:
    first = product(Session(arithmetic=Algebraic()), block=16)
    wrong = product(Session(arithmetic=Algebraic()), **arguments)
    kept = (first != 0) | (wrong != 0)  # the maximum with 0 hides about a quarter
    assert kept.mean() > 0.5
    assert not np.any(first[kept] == wrong[kept])


@pytest.mark.parametrize("mode", [Algebraic, Structure])
def test_integers_and_tensors_in_place(mode: Any) -> None:
    x, n = np.linspace(-1, 1, 8).astype(np.float32), np.arange(8, dtype=np.int32)
    before = x.copy()
    load(STEPS, Session(arithmetic=mode()))["factory"]()(x, n)
    expected = np.where(n > 3, 2 * n + 1, before) if mode is Algebraic else before
    np.testing.assert_array_equal(x, expected.astype(np.float32))
    np.testing.assert_array_equal(n, np.arange(8))


def test_structure_writes_zeros_into_results() -> None:
    assert not product(Session(arithmetic=Structure()), block=16).any()


def test_structure_keeps_what_nobody_wrote() -> None:
    text = GEMM.replace("T.copy(c, C[bx * 16, 0])", "T.copy(c[0:8, :], C[bx * 16, 0])")
    session = Session(arithmetic=Structure())
    random = np.random.default_rng(0)
    a, b = random.standard_normal((32, 48)).astype(np.float16), random.standard_normal((48, 16)).astype(np.float16)
    result = load(text, session)["factory"](block=16)(a, b)
    assert np.isnan(result[8:16]).all()
    assert not result[:8].any()


def test_what_nobody_wrote_goes_through_products_and_sums() -> None:
    x, y = (np.full((2, 3), Structure.number(0, "float32"), Structure.storage("float32")) for _ in range(2))
    x[0, 1] = y[1, 2] = Structure.poison("float32")

    def unwritten(values: Any) -> list[Any]:
        return np.isnan(Structure.to_host(values, "float32")).tolist()

    assert unwritten(Structure.matmul(x, y.T, "float32")) == [[True, True], [False, True]]
    assert unwritten(Structure.sum(x, 1)) == [True, False]
    assert unwritten(Structure.add(x, y)) == [[False, True, False], [False, False, True]]


VIEWS = """
import tilelang
import tilelang.language as T

@tilelang.jit
def factory(dtype):
    @T.prim_func
    def main(X: T.Tensor((4, 8), "float16"), Y: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=32) as bx:
            x = T.alloc_shared((4, 8), "float16")
            T.copy(X, x)
            flat = T.view(x, (32,), dtype)
            flat[5] = flat[6]
            T.copy(x, Y)
    return main
"""


def test_a_view_of_another_shape_shares_memory() -> None:
    x, y = np.arange(32, dtype=np.float16).reshape(4, 8), np.zeros(32, np.float16)
    load(VIEWS.replace("T.copy(x, Y)", "T.copy(flat, Y)"), Session(arithmetic=Algebraic()))["factory"]("float16")(x, y)
    assert y.tolist() == [*range(5), 6, *range(6, 32)]


@pytest.mark.parametrize("mode", [Algebraic, Structure])
def test_a_view_of_the_bits_of_floats_is_refused(mode: Any) -> None:
    x, y = np.arange(32, dtype=np.float16).reshape(4, 8), np.zeros(32, np.float16)
    text = VIEWS.replace("T.copy(x, Y)", "T.copy(x[0, 0:8], Y[0:8])")
    with pytest.raises(SimulatorError, match="bits of floats"):
        load(text, Session(arithmetic=mode()))["factory"]("int16")(x, y)
