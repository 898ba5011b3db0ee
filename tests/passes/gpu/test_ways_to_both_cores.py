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
RUNNING = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def kernel(M=256, N=500):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M // ROWS, threads=128) as bx:
            x = T.alloc_fragment((ROWS, 128), "float32")
            m = T.alloc_fragment((ROWS,), "float32")
            before = T.alloc_fragment((ROWS,), "float32")
            T.fill(m, 0.0)
            for k in T.serial(T.ceildiv(N, 128)):
                T.copy(X[bx * ROWS, k * 128], x)
                for i, j in T.Parallel(ROWS, 128):
                    x[i, j] = T.if_then_else(k * 128 + j < N, x[i, j], 0.0)
                T.copy(m, before)
                T.reduce_max(x, m, dim=1, clear=False)
                for i in T.Parallel(ROWS):
                    m[i] = m[i] + T.exp(before[i] - m[i])
            T.copy(m, Y[bx * ROWS])

    return main


kernel()
"""
MASK = SOFTMAX.replace("N=1024", "N=32").replace("x[i, j] - m[i])", "T.if_then_else(j < 20, x[i, j], 0.0) - m[i])")


@pytest.mark.parametrize(
    ("text", "rows", "more", "way"),
    [
        (SOFTMAX, 1, 2, "give each block two rows: `x` of (2, N), half as many blocks, indices times two"),
        (SOFTMAX, 9, 16, "give `x` 16 rows, and each block as many"),
        (RUNNING, 8, 16, "give `before` a multiple of 64 bytes, and each block as many rows"),
        (MASK, 2, 4, "give the tile a multiple of 512 bytes"),
    ],
)
def test_the_way_that_is_told_leads_to_both_cores(text: str, rows: int, more: int, way: str) -> None:
    one, two = (migrate_text(text.replace("ROWS", str(n)), "k.py", Options()) for n in (rows, more))
    assert [kernel.target for kernel in one.kernels] == ["developer-threads1"]
    assert f"wrote `threads=1`: one vector core does the work; for both, in the old kernel {way}" in {
        item.help for item in one.diagnostics
    }
    assert [kernel.target for kernel in two.kernels] == ["developer"]


def test_no_way_is_told_where_the_operator_is_not_the_author_s() -> None:
    text = SOFTMAX.replace("ROWS", "8").replace("T.exp(x[i, j] - m[i])", "T.pow(x[i, j], 3.5)")
    (found,) = (item for item in migrate_text(text, "k.py", Options()).diagnostics if item.code == "TL832")
    assert "T.tile.pow, which tl2npu writes here, processes" in found.message
    assert found.help == "wrote `threads=1`: one vector core does the work"


def test_the_reason_for_one_core_is_what_still_is_in_the_way() -> None:
    """Numbers of columns can be given to both cores; half of the copied vector is too short for a copy."""
    found = migrate_text(RUNNING.replace("ROWS", "8"), "k.py", Options()).diagnostics
    assert [item.code for item in found if "threads=1" in item.help] == ["TL700"]
