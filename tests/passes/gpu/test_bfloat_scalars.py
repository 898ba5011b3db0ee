"""Single bfloat16 elements of a tensor in arithmetic: the NPU converts no such scalars."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, refused, result_of
from tl2npu.migration import check_text
from tl2npu.options import Options

PARAMS = 'X: T.Tensor((8, 64), "float32"), W: T.Tensor((8, 4), "bfloat16"), Y: T.Tensor((8, 64), "float32")'


def kernel(*lines: str) -> str:
    body = ['x = T.alloc_shared((64,), "float32")', "T.copy(X[bx, 0], x)", *lines, "T.copy(x, Y[bx, 0])"]
    return gpu_file(PARAMS, "\n".join(body), launch="T.Kernel(8, threads=128) as bx")


def scaled(by: str) -> str:
    return f"for i in T.Parallel(64):\n    x[i] = x[i] * {by}"


@pytest.mark.parametrize(
    "lines",
    [
        ['w = T.cast(W[bx, 1], "float32")', scaled("w")],
        [scaled('T.cast(W[bx, 2], "float32")')],
        [scaled("W[bx, 2]")],
        ["if W[bx, 3] > 0.0:\n    T.clear(x)"],
    ],
)
def test_single_elements_in_arithmetic_are_refused(lines: list[str]) -> None:
    assert "TL711" in {code for code, _ in refused(kernel(*lines))}


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


def test_a_conversion_with_a_name_is_no_view_of_a_tile() -> None:
    text = kernel("for i in T.Parallel(64):\n    r = T.float32(T.bfloat16(x[i]))\n    x[i] = r * r")
    agree(text, {"X": np.random.default_rng(6).standard_normal((8, 64), np.float32)})
