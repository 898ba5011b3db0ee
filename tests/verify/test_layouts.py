"""Global tensors in a layout of their own are compared by index, and no layout may stay in one kernel alone."""

from __future__ import annotations

import pytest

from tests.verify.support import by_calls, by_script
from tl2npu.verify.settings import Call

OLD = """import numpy as np
import tilelang
import tilelang.language as T


def permuted(t):
    return T.Layout(t.shape, lambda i, j: [i // 8, j // 8, i % 8, j % 8])


@tilelang.jit
def write():
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), P: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            T.annotate_layout({P: permuted(P)})
            for i, j in T.Parallel(32, 64):
                P[bx * 32 + i, j] += X[bx * 32 + i, j] * 2.0

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


if __name__ == "__main__":
    x = np.arange(4096, dtype=np.float32).reshape(64, 64)
    p = np.ones((64, 64), np.float32)
    write()(x, p)
    np.testing.assert_array_equal(read()(p), 2 * x + 1)
"""
ANNOTATION = "            T.annotate_layout({P: permuted(P)})\n"
PLAIN = OLD.replace(ANNOTATION, "")
HALF = OLD.replace(ANNOTATION, "", 1)
CALLS = Call("write", {}), Call("read", {})


def test_both_without_the_layout_agree() -> None:
    result = by_calls(OLD, PLAIN, *CALLS, check=None)
    assert [(k.name, k.status) for k in result.kernels] == [("write.main", "verified"), ("read.back", "verified")]
    assert [c.max_error for c in result.comparisons] == [0.0, 0.0]
    assert sum("P has another memory layout than before" in note for note in result.notes) == 2


def test_the_script_agrees_launch_by_launch() -> None:
    result = by_script(OLD, PLAIN, check=None)
    assert result.ok
    assert [k.status for k in result.kernels] == ["verified", "verified"]


def test_the_same_layouts_agree_without_a_word() -> None:
    result = by_calls(OLD, OLD.replace("* 2.0", "* 2"), *CALLS, check=None)
    assert [k.status for k in result.kernels] == ["verified", "unchanged"]
    assert not any("layout" in note for note in result.notes)


def test_a_layout_in_one_kernel_alone_fails() -> None:
    result = by_calls(OLD, HALF, *CALLS, check=None)
    assert [k.status for k in result.kernels] == ["failed", "unchanged"]
    assert (
        "stores P in another memory layout than the old one, but read.back (P) keeps a layout"
        in result.kernels[0].reason
    )


@pytest.mark.parametrize("change", [("* 2.0", "* 3.0"), ("[bx * 32 + i, j] +=", "[bx * 32 + j % 32, i] +=")])
def test_a_wrong_kernel_is_still_found(change: tuple[str, str]) -> None:
    result = by_calls(OLD, PLAIN.replace(*change), *CALLS, check=None)
    assert [k.status for k in result.kernels] == ["failed", "verified"]


def test_a_layout_with_one_memory_for_two_tensors_is_not_compared() -> None:
    script = OLD[: OLD.index("if __name__")] + "x = np.ones((64, 64), np.float32)\nwrite()(x, x)\n"
    result = by_script(script, script.replace(ANNOTATION, ""), check=None)
    assert result.kernels[0].status == "not verified"
    assert "P has a layout of its own and shares its memory" in result.kernels[0].reason
