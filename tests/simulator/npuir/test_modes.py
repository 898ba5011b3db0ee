"""npuir kernels in the algebraic and the structure mode: what is equal by algebra agrees bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulator.kernels import load
from tests.simulator.npuir import test_operators as operators
from tl2npu.simulator.arithmetic.algebraic import Algebraic
from tl2npu.simulator.arithmetic.structure import Structure
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

RNG = np.random.default_rng(17)


@pytest.fixture(autouse=True)
def mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_ASCEND_MODE", "Developer")


SOFTMAX = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def factory(style, columns=32, block=8, lost=0):
    blocks = columns // block - lost

    @T.prim_func
    def main(A: T.Tensor((16, columns), "float32"), C: T.Tensor((16, columns), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            a = T.alloc_shared((8, block), "float32")
            top = T.alloc_fragment((8, 1), "float32")
            new = T.alloc_fragment((8, 1), "float32")
            total = T.alloc_fragment((8, 1), "float32")
            part = T.alloc_fragment((8, 1), "float32")
            T.vbrc(-T.infinity("float32"), top)
            T.clear(total)
            for k in T.serial(blocks):
                T.copy(A[cid * 8, k * block], a)
                T.reduce_max(a, part, dim=1)
                T.vmax(top, part, new)
                if style == "operators":
                    T.vsub(a, new, a)
                    T.vexp(a, a)
                    T.vsub(top, new, top)
                    T.vexp(top, top)
                    T.vmul(total, top, total)
                    T.reduce_sum(a, total, dim=1, clear=False)
                else:
                    for i, j in T.Parallel(8, block):
                        a[i, j] = T.exp(a[i, j] - new[i, 0])
                    T.reduce_sum(a, part, dim=1)
                    for i in T.Parallel(8):
                        total[i, 0] = total[i, 0] * T.exp(top[i, 0] - new[i, 0]) + part[i, 0]
                T.copy(new, top)
            for k in T.serial(columns // block):
                T.copy(A[cid * 8, k * block], a)
                if style == "operators":
                    T.vsub(a, top, a)
                    T.vexp(a, a)
                    T.vdiv(a, total, a)
                else:
                    for i, j in T.Parallel(8, block):
                        a[i, j] = T.exp(a[i, j] - top[i, 0]) / total[i, 0]
                T.copy(a, C[cid * 8, k * block])

    return main
"""


def softmax(a: np.ndarray, arithmetic: Any = None, **arguments: Any) -> np.ndarray:
    session = Session() if arithmetic is None else Session(arithmetic=arithmetic)
    return load(SOFTMAX, session)["factory"](**arguments)(np.array(a))  # type: ignore[no-any-return]


def test_two_styles_and_two_tilings_of_a_softmax_are_one_computation() -> None:
    a = RNG.uniform(-2, 2, (16, 32)).astype(np.float32)
    expected = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax(a, style="operators"), expected, rtol=1e-5)
    np.testing.assert_allclose(softmax(a, style="loops", block=16), expected, rtol=1e-5)
    found = [softmax(a, Algebraic(), style=s, block=b) for s, b in (("operators", 8), ("loops", 8), ("loops", 16))]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_lost_block_is_another_computation() -> None:
    a = RNG.uniform(-2, 2, (16, 32)).astype(np.float32)
    assert not np.any(softmax(a, Algebraic(), style="operators") == softmax(a, Algebraic(), style="operators", lost=1))


@pytest.mark.parametrize("arithmetic", [Algebraic, Structure])
def test_every_operator_computes_through_the_arithmetic(arithmetic: Any) -> None:
    """NumPy cannot compute with the elements of these modes: an operator that bypassed them would fail."""
    with installed(Session(arithmetic=arithmetic())):
        import tilelang
        import tilelang.language as T

        operators.T, operators.tilelang = T, tilelang
        for name in operators.FLOAT_PAIRS:
            operators.run(operators.pair(name, 8, 16, 1), operators.floats(8, 16), operators.floats(8, 1))
        for name in operators.INTEGER_PAIRS:
            pair = operators.pair(name, 4, 8, 8, "int32")
            operators.run(pair, operators.whole_numbers(4, 8), operators.whole_numbers(4, 8, high=5))
        for name in (*operators.UNARY, *operators.NEAR_ZERO):
            operators.run(operators.single(name), operators.floats(4, 8, low=0.3))
