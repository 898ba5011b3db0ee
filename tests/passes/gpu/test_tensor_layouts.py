"""Layouts of global tensors: they go in all kernels of a file or in none."""

from __future__ import annotations

import numpy as np

from tests.passes.gpu.support import result_of
from tests.passes.simulated import run

TEXT = """import tilelang
import tilelang.language as T


def permuted(t):
    return T.Layout(t.shape, lambda i, j: [i // 8, j // 8, i % 8, j % 8])


@tilelang.jit(out_idx=[1])
def write():
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), P: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            x = T.alloc_shared((32, 64), "float32")
            T.annotate_layout({P: permuted(P)})
            T.copy(X[bx * 32, 0], x)
            for i, j in T.Parallel(32, 64):
                x[i, j] = x[i, j] * 2.0
            T.copy(x, P[bx * 32, 0])

    return main


@tilelang.jit(out_idx=[1])
def read():
    @T.prim_func
    def back(P: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            y = T.alloc_shared((32, 64), "float32")
            T.annotate_layout({P: permuted(P)})
            T.copy(P[bx * 32, 0], y)
            T.copy(y, Y[bx * 32, 0])

    return back
"""
X = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)


def test_both_kernels_lose_the_layout() -> None:
    result = result_of(TEXT)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "migrated"]
    assert [d.code for d in result.diagnostics if d.severity == "warning"] == ["TL129", "TL129"]
    assert result.new_text is not None
    assert "permuted" not in result.new_text
    passed = run(result.new_text, {"X": X}, "write")["P"]
    np.testing.assert_array_equal(run(result.new_text, {"P": passed}, "read")["Y"], X * 2)


def test_a_refused_partner_keeps_both() -> None:
    text = TEXT.replace("T.copy(y, Y[bx * 32, 0])", 'T.call_extern("handle", "store", y.data)')
    assert text != TEXT
    result = result_of(text)
    assert [kernel.disposition for kernel in result.kernels] == ["refused", "refused"]
    assert result.new_text == text
    assert {d.code for d in result.diagnostics if d.kernel == "write.main" or d.line == 12} == {"TL116"}


def test_a_layout_of_one_kernel_alone_is_refused() -> None:
    text = TEXT.replace("            T.annotate_layout({P: permuted(P)})\n            T.copy(P", "            T.copy(P")
    result = result_of(text)
    assert [kernel.disposition for kernel in result.kernels] == ["refused", "migrated"]


def test_layouts_of_different_functions_are_refused() -> None:
    text = TEXT.replace("def write", "def other(t):\n    return permuted(t)\n\n\n@x\ndef write", 1)
    text = text.replace("@tilelang.jit(out_idx=[1])\ndef other", "def other").replace(
        "@x\n", "@tilelang.jit(out_idx=[1])\n"
    )
    text = text.replace("{P: permuted(P)}", "{P: other(P)}", 1)
    assert all(kernel.disposition == "refused" for kernel in result_of(text).kernels)
