"""TL127: a loop with cross-core transfers that the only block of a grid does not run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated

PARAMS = 'Q: T.Tensor((seq, 32), "float16"), K: T.Tensor((seq, 32), "float16"), O: T.Tensor((2, seq, 32), "float32")'
BODY = """
q = T.alloc_shared((32, 32), "float16")
k = T.alloc_shared((32, 32), "float16")
p = T.alloc_fragment((32, 32), "float32")
h = T.alloc_shared((32, 32), "float16")
o = T.alloc_fragment((32, 32), "float32")
T.copy(Q[bx * 32, 0], q)
T.clear(o)
for n in T.serial({stop}):
    T.copy(K[n * 32, 0], k)
    T.clear(p)
    T.gemm(q, k, p, transpose_B=True)
    for i, j in T.Parallel(32, 32):
        h[i, j] = p[i, j] * 0.5
    T.gemm(h, k, o)
T.copy(o, O[by, bx * 32, 0])
"""


def text(stop: str, grid: str = "T.ceildiv(seq, 32), 2") -> str:
    return gpu_file(PARAMS, BODY.format(stop=stop), args="seq", launch=f"T.Kernel({grid}, threads=128) as (bx, by)")


@pytest.mark.parametrize("stop", ["bx", "T.ceildiv(bx * 32, 32)"])
@pytest.mark.parametrize("seq", [32, 96])
def test_one_block_and_several(seq: int, stop: str) -> None:
    """Without the condition the cores of the only block wait for each other: the simulator says so."""
    rng = np.random.default_rng(3)
    inputs = {name: (rng.standard_normal((seq, 32)) / 4).astype(np.float16) for name in "QK"}
    assert "if seq > 32:" in agree(text(stop), inputs, args=(seq,))


@pytest.mark.parametrize(
    ("stop", "grid", "test"),
    [
        ("bx", "seq // 32, 2", "if seq // 32 > 1:"),
        ("bx", "T.ceildiv(T.min(seq, 64), 32), 2", "if int(T.min(seq, 64)) > 32:"),
        ("bx + 1", "T.ceildiv(seq, 32), 2", ""),
        ("by * bx", "4, seq // 8", "if seq // 8 > 1:"),
        ("bx", "4, 2", ""),
    ],
)
def test_the_condition(stop: str, grid: str, test: str) -> None:
    lines = [line.strip() for line in migrated(text(stop, grid)).splitlines() if line.strip().startswith("if ")]
    assert lines == ([test] if test else [])
