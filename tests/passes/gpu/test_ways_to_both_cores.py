"""What is said under a kernel that got ``threads=1``: taken at its word it leads to both vector cores."""

from __future__ import annotations

import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options

SOFTMAX = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def kernel(M=252, N=1024):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // ROWS, threads=128) as bx:
            x = T.alloc_fragment((ROWS, N), "float32")
            m = T.alloc_fragment((ROWS,), "float32")
            T.copy(X[bx * ROWS, 0], x)
            T.reduce_max(x, m, dim=1)
            for i, j in T.Parallel(ROWS, N):
                x[i, j] = T.exp(x[i, j] - m[i])
            T.copy(x, Y[bx * ROWS, 0])

    return main


kernel()
"""
SUMS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def kernel(M=256, N=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M // ROWS, threads=128) as bx:
            x = T.alloc_fragment((ROWS, N), "float32")
            s = T.alloc_fragment((ROWS,), "float32")
            T.copy(X[bx * ROWS, 0], x)
            T.reduce_sum(x, s, dim=1)
            T.copy(s, Y[bx * ROWS])

    return main


kernel()
"""


@pytest.mark.parametrize(
    ("text", "rows", "more", "way"),
    [
        (SOFTMAX, 1, 2, "give each block two rows: `x` of (2, N), half as many blocks, indices times two"),
        (SOFTMAX, 9, 16, "give `x` 16 rows, and each block as many"),
        (SUMS, 8, 16, "give `s` 16 elements, and each block as many"),
    ],
)
def test_the_way_that_is_told_leads_to_both_cores(text: str, rows: int, more: int, way: str) -> None:
    one, two = (migrate_text(text.replace("ROWS", str(n)), "k.py", Options()) for n in (rows, more))
    assert [kernel.target for kernel in one.kernels] == ["developer-threads1"]
    assert f"wrote `threads=1`: one vector core does the work; for both, in the old kernel {way}" in {
        item.help for item in one.diagnostics
    }
    assert [kernel.target for kernel in two.kernels] == ["developer"]
