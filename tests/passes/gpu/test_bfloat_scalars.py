"""Single bfloat16 elements of a tensor in arithmetic: converted in UB, with NumPy's values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import run
from tl2npu.migration import check_text
from tl2npu.options import Options

PARAMS = 'X: T.Tensor((8, 64), "float32"), W: T.Tensor((8, 4), "bfloat16"), Y: T.Tensor((8, 64), "float32")'
RNG = np.random.default_rng(7)
X = RNG.standard_normal((8, 64)).astype(np.float32)
W = RNG.standard_normal((8, 4)).astype(ml_dtypes.bfloat16)
WIDE = W.astype(np.float32)


def kernel(*lines: str) -> str:
    body = ['x = T.alloc_shared((64,), "float32")', "T.copy(X[bx, 0], x)", *lines, "T.copy(x, Y[bx, 0])"]
    return gpu_file(PARAMS, "\n".join(body), launch="T.Kernel(8, threads=128) as bx")


def scaled(by: str) -> str:
    return f"for i in T.Parallel(64):\n    x[i] = x[i] * {by}"


CASES = {
    "a name that is converted": (['w = T.cast(W[bx, 1], "float32")', scaled("w")], X * WIDE[:, 1:2]),
    "a name that is converted later": (["w = W[bx, 1]", scaled('T.cast(w, "float32")')], X * WIDE[:, 1:2]),
    "in the loop": ([scaled('T.cast(W[bx, 2], "float32")')], X * WIDE[:, 2:3]),
    "promoted": ([scaled("W[bx, 2]")], X * WIDE[:, 2:3]),
    "in a serial loop": (
        ["for k in T.serial(4):\n    w = T.cast(W[bx, k], 'float32')\n    for i in T.Parallel(64):\n        x[i] += w"],
        X + WIDE[:, 0:1] + WIDE[:, 1:2] + WIDE[:, 2:3] + WIDE[:, 3:4],
    ),
    "a condition": (["if W[bx, 3] > 0.0:\n    T.clear(x)"], np.where(WIDE[:, 3:4] > 0, 0, X)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    lines, expected = CASES[name]
    new = migrated(kernel(*lines))
    assert "W[bx, 1]" not in new
    np.testing.assert_allclose(run(new, {"X": X, "W": W})["Y"], expected, rtol=1e-6)


def test_elements_that_only_move_stay() -> None:
    params = 'W: T.Tensor((8, 4), "bfloat16"), Y: T.Tensor((8, 4), "bfloat16")'
    body = "y = T.alloc_shared((4,), 'bfloat16')\nfor i in T.serial(4):\n    y[i] = W[bx, 3 - i]\nT.copy(y, Y[bx, 0])"
    result = result_of(gpu_file(params, body, launch="T.Kernel(8, threads=128) as bx"))
    assert "TL711" not in {d.code for d in result.diagnostics}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (['w = T.cast(W[cid, 1], "float32")', "T.tile.mul(x, x, w)"], True),
        (["x[0] = W[cid, 1]"], True),
        (["if W[cid, 1] > 0.5:", "    T.tile.fill(x, 0.0)"], True),
        (["b[0] = W[cid, 1]"], False),
        (["T.tile.fill(b, W[cid, 1] * 2.0)"], True),
        (["v = W[cid, 1]", "b[0] = v"], False),
    ],
)
def test_check(lines: list[str], found: bool) -> None:
    keys = "TL_ASCEND_AUTO_CV_COMBINE TL_ASCEND_AUTO_SYNC TL_ASCEND_MEMORY_PLANNING".split()
    configs = ", ".join(f"tilelang.PassConfigKey.{key}: True" for key in keys)
    body = ["x = T.alloc_shared((64,), 'float32')", "b = T.alloc_ub((16,), 'bfloat16')", "T.tile.fill(b, 0.0)"]
    body += ["T.copy(X[cid, 0], x)", *lines, "T.copy(x, Y[cid, 0])"]
    text = gpu_file(PARAMS, "\n".join(body), launch="T.Kernel(8, threads=1, is_npu=True) as (cid)")
    text = text.replace("@tilelang.jit(out_idx=[-1])", f"@tilelang.jit(out_idx=[2], pass_configs={{{configs}}})")
    told = [d.code for d in check_text(text, "k.py", Options()).diagnostics if d.severity == "error"]
    assert told == (["TL711"] if found else [])
