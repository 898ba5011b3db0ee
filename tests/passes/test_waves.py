"""``T.Persistent`` as a loop over the tasks of a block, in both languages of the NPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.simulated import run
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.simulator.lowering.lower import IDEAL

NAMES = "Kernel Tensor alloc_L1 alloc_L0C copy gemm_v0 prim_func Persistent".split()
RNG = np.random.default_rng(11)
INPUTS = {
    "A": RNG.standard_normal((3, 64, 16)).astype(np.float16),
    "B": RNG.standard_normal((16, 48)).astype(np.float16),
}


def kernel(frame: str, launch: str = "T.Kernel(5, is_npu=True) as (cid, vid)") -> str:
    """Products of 3 x 4 x 3 tiles."""
    return f"""import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def in_waves():
    @T.prim_func
    def main(
        A: T.Tensor((3, 64, 16), "float16"),
        B: T.Tensor((16, 48), "float16"),
        C: T.Tensor((3, 64, 48), "float32"),
    ):
        with {launch}:
            a = T.alloc_L1((16, 16), "float16")
            b = T.alloc_L1((16, 16), "float16")
            c = T.alloc_L0C((16, 16), "float32")
            for n, bx, by in {frame}:
                T.copy(A[n, bx * 16, 0], a)
                T.copy(B[0, by * 16], b)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, C[n, bx * 16, by * 16])

    return main
"""


def by_name(text: str) -> str:
    for name in NAMES:
        text = text.replace(f"T.{name}(", f"{name}(").replace(f"@T.{name}\n", f"@{name}\n")
    return text.replace("import tilelang.language as T", f"from tilelang.language import {', '.join(NAMES)}")


@pytest.mark.parametrize("target", ["ascendc", "npuir"])
@pytest.mark.parametrize(
    "frame",
    [
        "T.Persistent([3, 4, 3], 5, cid)",
        "T.Persistent([3, 2 + 2, 3], wave_size=4 + 1, index=cid)",
        "T.Persistent([3, 4, 3], 5, 4 - cid)",
    ],
)
@pytest.mark.parametrize("spelt", [str, by_name])
def test_every_task_is_done_once(target: str, frame: str, spelt: object) -> None:
    text = spelt(kernel(frame))  # type: ignore[operator]
    result = migrate_text(text, "k.py", Options(target=target))
    new = result.new_text
    assert new is not None
    assert [k.disposition for k in result.kernels] == ["migrated"], [(d.code, d.message) for d in result.diagnostics]
    assert "Persistent" not in new
    found = run(new, INPUTS, "in_waves", (), IDEAL)["C"]
    wanted = np.einsum("nmk,kj->nmj", INPUTS["A"].astype(np.float32), INPUTS["B"].astype(np.float32))
    np.testing.assert_allclose(found, wanted, 1e-3, 1e-3)


def test_waves_that_every_block_fills_stay_in_ascend_c() -> None:
    text = kernel("T.Persistent([3, 4, 3], 6, cid)", "T.Kernel(6, is_npu=True) as (cid, vid)")
    result = migrate_text(text, "k.py", Options())
    assert "T.Persistent([3, 4, 3], 6, cid)" in (result.new_text or "")
