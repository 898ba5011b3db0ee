"""Tensors of bool become tensors of uint8 where that makes no difference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, gpu_file, result_of
from tests.passes.simulated import run

PARAMS = "X: T.Tensor((128, 64), 'float32'), M: T.Tensor((2,), {0}), Y: T.Tensor((128, 64), 'float32')"
BODY = """
x = T.alloc_shared((64, 64), "float32")
T.copy(X[bx * 64, 0], x)
if {0}:
    for i, j in T.Parallel(64, 64):
        x[i, j] = x[i, j] * 2.0
T.copy(x, Y[bx * 64, 0])
"""
TORCH = "import torch\n" + IMPORTS


def text_of(condition: str = "M[bx]", dtype: str = "'bool'", host: str = "", **around: str) -> str:
    return gpu_file(PARAMS.format(dtype), BODY.format(condition), head=TORCH, **around) + host


@pytest.mark.parametrize("dtype", ["'bool'", "T.bool", "kind"])
@pytest.mark.parametrize("condition", ["M[bx]", "M[bx] != 0", "M[bx] == True"])
def test_the_kernel_reads_the_same(dtype: str, condition: str) -> None:
    result = result_of(text_of(condition, dtype, factory="kind = T.bool" if dtype == "kind" else ""))
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    new = result.new_text or ""
    assert 'M: T.Tensor((2,), "uint8")' in new
    assert "if M[bx]:" not in new  # the compiler joins conditions with `&&`, which takes no number
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    found = run(new, {"X": x, "M": np.array([0, 1], np.uint8)}, "factory", ())
    np.testing.assert_array_equal(found["Y"], np.concatenate([x[:64], x[64:] * 2]))
    (told,) = [(d.severity, d.message) for d in result.diagnostics if d.code == "TL736"]
    assert told == ("warning", "now uint8, with 0 and 1: `M`; pass bool tensors as `x.to(torch.uint8)`")


def test_calls_of_the_file_convert_theirs() -> None:
    host = "\n\ndef main(x, masks):\n    kernel = factory()\n    return kernel(x, masks[0] & masks[1])\n"
    result = result_of(text_of(host=host))
    assert "kernel(x, (masks[0] & masks[1]).to(torch.uint8))" in (result.new_text or "")
    assert [d.severity for d in result.diagnostics if d.code == "TL736"] == ["info"]


def test_calls_that_cannot_be_followed_are_told() -> None:
    host = "\n\ndef main(*tensors):\n    return factory()(*tensors)\n"
    result = result_of(text_of(host=host))
    assert "factory()(*tensors)" in (result.new_text or "")
    assert [d.severity for d in result.diagnostics if d.code == "TL736"] == ["warning"]


@pytest.mark.parametrize(
    "text",
    [
        text_of("~M[bx] != 0"),  # of 1 it is 254, and still true
        text_of("M[bx]").replace("T.copy(x, Y", "M[bx] = False\n            T.copy(x, Y"),
    ],
    ids=["inverted", "written"],
)
def test_where_it_makes_a_difference(text: str) -> None:
    result = result_of(text)
    assert [kernel.disposition for kernel in result.kernels] == ["refused"]
    assert result.new_text == text
