"""A mask of the end of a row that is lost: what stands behind the end must matter in one of the draws."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.support import HEAD, by_calls, codes
from tl2npu.migration import migrate_text
from tl2npu.options import Options
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


@pytest.mark.sampled
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
    message = result.diagnostics[0].message
    assert dtype == "float32" or "far" in message or "(on infinities)" in message  # of which one row is all -inf
    assert by_calls(old, old, call, check=None).ok


def test_one_of_two_tensors_is_positive() -> None:
    """Scores of queries and keys are far below 0 then."""
    assert [[far(kind, number) for number in range(3)] for kind in FAR] == [[1, -1, 1], [-1, -1, -1]]
    for sign in (1, -1):
        found = numbers("float16", (64, 64), np.random.default_rng(0), FAR[0], Sizes(), sign)
        assert (np.sign(found) == sign).all()


MASKED = (
    HEAD
    + """

@tilelang.jit(out_idx=[2])
def f(M, N, BM=16, BN=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Mask: T.Tensor((M, N), "TYPE"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), threads=128) as bx:
            x = T.alloc_fragment((BM, BN), "float32")
            k = T.alloc_fragment((BM, BN), "TYPE")
            h = T.alloc_fragment((BM, BN), "float16")
            m = T.alloc_fragment((BM,), "float32")
            T.copy(X[bx * BM, 0], x)
            T.copy(Mask[bx * BM, 0], k)
            for i, j in T.Parallel(BM, BN):
                h[i, j] = k[i, j]
            for i, j in T.Parallel(BM, BN):
                x[i, j] = T.if_then_else(h[i, j] != 0, x[i, j], -T.infinity("float32"))
            T.reduce_max(x, m, dim=1)
            for i, j in T.Parallel(BM, BN):
                x[i, j] = T.exp(x[i, j] - m[i])
            T.copy(x, Y[bx * BM, 0])

    return main
"""
)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("rows", [10, 33, 40, 44, 47])
def test_rows_behind_the_end_of_a_mask_do_no_harm(rows: int, dtype: str) -> None:
    """A load of 8-bit elements leaves them as they were (the page of TL873); nothing of them is stored."""
    old = MASKED.replace("TYPE", dtype)
    new = migrate_text(old, "k.py", Options()).new_text or ""
    assert "T.tile.compare" in new
    result = by_calls(old, new, Call("f", {"M": rows, "N": 128}), draws=1)
    assert result.ok, result.diagnostics


def test_rows_behind_the_end_that_reach_a_row_inside() -> None:
    """A sum over the rows of the tile has what is in them."""
    old = MASKED.replace("TYPE", "int8").replace("T.alloc_fragment((BM,)", "T.alloc_fragment((BN,)")
    old = old.replace("T.reduce_max(x, m, dim=1)", "T.reduce_max(x, m, dim=0)").replace("- m[i]", "- m[j]")
    new = migrate_text(old, "k.py", Options()).new_text or ""
    result = by_calls(old, new, Call("f", {"M": 44, "N": 128}), draws=1, check=None)
    assert {"TL907", "TL908"} & set(codes(result))
