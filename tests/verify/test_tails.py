"""A mask of the end of a row that is lost: what stands behind the end must matter in one of the draws."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.support import HEAD, by_calls, codes
from tl2npu.verify.drawing import FAR, Sizes, far, numbers
from tl2npu.verify.settings import Call

KERNEL = (
    HEAD
    + """

@tilelang.jit(out_idx=[1])
def f(M, N, BM=1, BN=4096):
    @T.prim_func
    def main(X: T.Tensor((M, N), "TYPE"), Y: T.Tensor((M, N), "TYPE")):
        with T.Kernel(T.ceildiv(M, BM), threads=128) as bx:
            x = T.alloc_fragment((BM, BN), "TYPE")
            f = T.alloc_fragment((BM, BN), "float32")
            m = T.alloc_fragment((BM,), "float32")
            s = T.alloc_fragment((BM,), "float32")
            T.copy(X[bx * BM, 0], x)
            for i, j in T.Parallel(BM, BN):
                f[i, j] = x[i, j]
            for i, j in T.Parallel(BM, BN):
                f[i, j] = T.if_then_else(j < N, f[i, j], NEUTRAL)
            BODY
            T.copy(x, Y[bx * BM, 0])

    return main
"""
)
EACH = "for i, j in T.Parallel(BM, BN):\n                {}\n            "
SOFTMAX = (
    "T.reduce_max(f, m, dim=1)\n            "
    + EACH.format("f[i, j] = T.exp(f[i, j] - m[i])")
    + "T.reduce_sum(f, s, dim=1)\n            "
    + EACH.format("x[i, j] = f[i, j] / s[i]")
)
EXPONENTIALS = (
    EACH.format("f[i, j] = T.exp(f[i, j])")
    + "T.reduce_sum(f, s, dim=1)\n            "
    + EACH.format("x[i, j] = T.log(s[i])")
)
INFINITY = 'T.infinity("float32")'
LOST = {
    "softmax": (SOFTMAX, f"-{INFINITY}"),
    "largest": ("T.reduce_max(f, m, dim=1)\n            " + EACH.format("x[i, j] = m[i]"), f"-{INFINITY}"),
    "smallest": ("T.reduce_min(f, m, dim=1)\n            " + EACH.format("x[i, j] = m[i]"), INFINITY),
    "sum of exponentials": (EXPONENTIALS, f"-{INFINITY}"),
    "smallest size": ("T.reduce_min(f, m, dim=1)\n            " + EACH.format("x[i, j] = T.abs(m[i])"), INFINITY),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize(("body", "neutral"), LOST.values(), ids=LOST)
def test_a_mask_that_is_lost(body: str, neutral: str, dtype: str) -> None:
    """Three zeros behind 4,093 elements."""
    old = KERNEL.replace("TYPE", dtype).replace("BODY", body).replace("NEUTRAL", neutral)
    lines = old.split("\n")
    first = next(number for number, line in enumerate(lines) if "if_then_else" in line)
    new = "\n".join([*lines[: first - 1], *lines[first + 1 :]])
    call = Call("f", {"M": 3, "N": 4093})
    assert dtype == "float32" or by_calls(old, new, call, check=None, draws=1).ok  # which has the digits to show it
    result = by_calls(old, new, call, check=None)
    assert codes(result) == ["TL907"]
    assert dtype == "float32" or "far" in result.diagnostics[0].message
    assert by_calls(old, old, call, check=None).ok


def test_one_of_two_tensors_is_positive() -> None:
    """Scores of queries and keys are far below 0 then."""
    assert [[far(kind, number) for number in range(3)] for kind in FAR] == [[1, -1, 1], [-1, -1, -1]]
    for sign in (1, -1):
        found = numbers("float16", (64, 64), np.random.default_rng(0), FAR[0], Sizes(), sign)
        assert (np.sign(found) == sign).all()
