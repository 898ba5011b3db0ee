"""Indices before the first element: the last ones for a GPU's compiler, an error on an NPU.

The compiler for NPUs makes ``copy_gm_to_ub(x[0], X[-64], ...)`` of ``T.copy(X[-1, 0], x)``: it was asked.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL
from tl2npu.simulator.machine.access import OutOfBounds

HEAD = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def factory():
    @T.prim_func
    def main(X: T.Tensor((32, 64), "float32"), O: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, {launch}) as bx:
            x = T.{alloc}((32, 64), "float32")
            {body}
            T.copy(x, O)

    return main
"""
GIVEN = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


@pytest.mark.parametrize("reading", [IDEAL, ACTUAL])
@pytest.mark.parametrize(
    "body",
    [
        "T.copy(X[-1, 0], x)",
        "T.copy(X[0 - 1:31, :], x)",
        "T.copy(X[:, -1:63], x)",
        "T.copy(X[bx - 1, 0], x)",
        "T.copy(X, O[-1, 0])",
        "T.copy(x[-1:31, :], O)",
        "x[0, 0] = X[-1, 0]",
        "x[-1, 0] = 1.0",
    ],
)
def test_an_npu_reads_before_the_first_element(body: str, reading: str) -> None:
    text = HEAD.format(launch="threads=1, is_npu=True", alloc="alloc_ub", body=body)
    with pytest.raises(OutOfBounds, match="-1"):
        run(text, {"X": GIVEN}, "factory", (), reading)


def test_a_gpu_reads_the_last() -> None:
    body = "for i, j in T.Parallel(32, 64):\n                x[i, j] = X[-1, j]"
    text = HEAD.format(launch="threads=128", alloc="alloc_fragment", body=body)
    found = run(text, {"X": GIVEN}, "factory", ())["O"]
    np.testing.assert_array_equal(found, np.broadcast_to(GIVEN[31], (32, 64)))
