"""Tiles that are shorter than the loops over their elements: as long as the loops where nothing else uses them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL

PARAMS = 'X: T.Tensor((64, 32), "float32"), S: T.Tensor((heads,), "float32"), Y: T.Tensor((64, 32), "float32")'
BODY = """
x = T.alloc_fragment((rows, 32), "float32")
sinks = T.alloc_fragment(({0},), "float32")
T.copy(X[by * rows, 0], x)
for i in T.Parallel(rows):
    sinks[i] = S[by]
{1}
for i, j in T.Parallel(rows, 32):
    x[i, j] = x[i, j] - sinks[i]
T.copy(x, Y[by * rows, 0])
"""


def kernel(size: str, between: str = "") -> str:
    body = BODY.format(size, between)
    text = gpu_file(PARAMS, body, launch="T.Kernel(64 // rows, threads=128) as by", factory="pass")
    return text.replace("def factory():", "def factory(heads=2, rows=32):") + "\n\nfactory()\n"


def test_a_tile_gets_the_length_of_its_loops() -> None:
    result = result_of(kernel("heads"))
    (only,) = result.kernels
    assert only.disposition == "migrated"
    assert 'sinks = T.alloc_shared((rows,), "float32")' in result.new_text
    assert "TL628" in {d.code for d in result.diagnostics}
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((64, 32)).astype(np.float32), rng.standard_normal(2).astype(np.float32)
    found = run(result.new_text, {"X": x, "S": s}, reading=ACTUAL)
    np.testing.assert_allclose(found["Y"], x - np.repeat(s, 32)[:, None], rtol=1e-6)


@pytest.mark.parametrize(
    ("size", "between"),
    [("64", ""), ("heads", "T.fill(sinks, 0.0)"), ("heads", "sinks[0] = 1.0")],
    ids=["long-enough", "a-use-of-the-whole", "another-element"],
)
def test_a_tile_keeps_its_length(size: str, between: str) -> None:
    assert "TL628" not in {d.code for d in result_of(kernel(size, between)).diagnostics}
