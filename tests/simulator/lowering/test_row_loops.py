"""A row of numbers beside a tile: a loop over the rows (ascend_lower_parallel_to_vector.cc:535-605)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tl2npu.simulator.run import run_script
from tl2npu.simulator.standin.session import Session

KERNEL = """
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[2])
def make():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            with T.Scope("V"):
                a = T.alloc_ub((4, 64), "float32")
                b = T.alloc_ub((64,), "float32")
                c = T.alloc_ub((4, 64), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.tile.fill(c, 0.0)
                T.barrier_all()
                for i, j in T.Parallel(4, 32):
                    c[i, j] = VALUE
                T.barrier_all()
                T.copy(c, C)
    return main

a = np.random.default_rng(0).standard_normal((4, 64)).astype("float32")
b = np.arange(64, dtype="float32")
c = make()(a, b)
"""


@pytest.mark.parametrize("flat", [False, True])
def test_half_of_the_columns(tmp_path: Path, flat: bool) -> None:
    """Row by row the half is the half of each row; without the row of numbers it is one flat run (g3_subcol)."""
    path = tmp_path / "script.py"
    path.write_text(KERNEL.replace("VALUE", "a[i, j] + a[i, j]" if flat else "a[i, j + 32] * b[j + 32]"))
    found = run_script(path, [], Session())
    a, b, expected = found["a"], found["b"], np.zeros((4, 64), np.float32)
    if flat:
        expected[:2] = 2 * a[:2]
    else:
        expected[:, :32] = a[:, 32:] * b[32:]
    np.testing.assert_array_equal(found["c"], expected)
