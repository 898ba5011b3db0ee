"""What is 1 in every launch is tried with another size, or told."""

from __future__ import annotations

import pytest

from tests.verify.support import HEAD, by_calls, by_script, codes
from tl2npu.verify.settings import Call

KERNEL = (
    HEAD
    + """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def f(B, M, N=64, BM=32, factor=1, scale=1.0, stages=1, threads=1):
    @T.prim_func
    def main(X: T.Tensor((B, M, N), "float32"), Y: T.Tensor((B, M, N), "float32")):
        with T.Kernel(B * (M // BM), threads=threads, is_npu=True) as (cid):
            x = T.alloc_shared((BM, N), "float32")
            s = T.alloc_shared((BM, N), "float32")
            b = cid // (M // BM)
            row = cid % (M // BM) * BM
            T.tile.fill(s, 0.0)
            for k in T.Pipelined(N // 64, num_stages=stages):
                T.copy(X[b, row, 0], x)
                T.tile.add(s, s, x)
            T.tile.mul(s, s, scale)
            T.tile.add(s, s, factor * 2.0)
            T.copy(s, Y[b, row, 0])

    return main
"""
)
MAIN = "\n\nif __name__ == '__main__':\n    f(1, 32)(np.ones((1, 32, 64), np.float32))\n"
WRONG = {
    "another batch": ("X[b, row, 0]", "X[0, row, 0]"),
    "another block": ("% (M // BM) * BM", "% 1 * BM"),
    "a sum that is not carried": ("T.tile.add(s, s, x)", "T.tile.mul(s, x, 1.0)"),
    "no factor": ("factor * 2.0", "2.0"),
    "a factor of 1.0": ("T.tile.mul(s, s, scale)", "T.tile.mul(s, s, 1.0)"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("before", "after"), WRONG.values(), ids=WRONG)
def test_what_is_1_proves_nothing(before: str, after: str) -> None:
    old = KERNEL.replace("T.Pipelined(N // 64", "T.Pipelined(M // 32")
    assert before in old
    new = old.replace(before, after)
    call = Call("f", {"B": 1, "M": 32})
    assert by_calls(old, new, call, check=None, draws=1).ok
    result = by_calls(old, new, call, check=None)
    assert codes(result) == ["TL907"]
    assert "(on another size, B = 3, M = 96, factor = 3, scale = 1.5)" in result.diagnostics[0].message
    assert codes(by_script(old + MAIN, new + MAIN, check=None)) == ["TL907"]
    right = by_calls(old, old, call, check=None)
    assert right.ok
    assert "f.main: also with B = 3, M = 96, factor = 3, scale = 1.5" in right.notes


def left(text: str, *calls: Call) -> list[str]:
    result = by_calls(text, text, *calls, check=None)
    assert result.ok, result.diagnostics
    return [note for note in result.notes if "in every launch" in note]


def test_what_no_size_changes_is_told() -> None:
    """The loop has one turn for N up to 127, and a larger N is another tile."""
    line = 1 + KERNEL[: KERNEL.index("for k in")].count("\n")
    said = f"f.main: the loop over `k` in line {line} is 1 in every launch; other values are not verified"
    assert left(KERNEL, Call("f", {"B": 1, "M": 32})) == [said]
    assert left(KERNEL, Call("f", {"B": 1, "M": 32, "N": 128})) == []
    assert left(KERNEL, Call("f", {"B": 1, "M": 32}), Call("f", {"B": 1, "M": 32, "N": 128})) == []


def test_a_factory_that_takes_one_size_only() -> None:
    """``stages`` and ``threads`` are no sizes, and change nothing that is computed."""
    only = "    assert B == 1 and factor == 1 and M == 32 and N == 64\n\n    @T.prim_func"
    old = KERNEL.replace("    @T.prim_func", only, 1)
    assert left(old.replace("scale)", "2.0)"), Call("f", {"B": 1, "M": 32})) == []


def test_a_new_factory_that_takes_one_size_only() -> None:
    new = KERNEL.replace("    @T.prim_func", "    assert B == 1\n\n    @T.prim_func", 1)
    result = by_calls(KERNEL, new, Call("f", {"B": 1, "M": 32}), check=None)
    assert result.ok, result.diagnostics
    assert any("not compared with B = 3, factor = 3" in note and "new factory" in note for note in result.notes)


def test_tiles_that_are_larger_need_not_fit() -> None:
    old = KERNEL.replace("BM=32", "BM=1")
    call = Call("f", {"B": 2, "M": 4, "N": 8192, "factor": 2, "scale": 2.0})
    result = by_calls(old, old, call, check=None)
    assert result.ok, result.diagnostics
    assert any("also with BM = 2" in note for note in result.notes)


GROUPS = (
    HEAD
    + """

@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def f(heads, M=32, N=64, groups=1):
    @T.prim_func
    def main(X: T.Tensor((heads // groups, M, N), "float32"), Y: T.Tensor((heads, M, N), "float32")):
        with T.Kernel(heads, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((M, N), "float32")
            T.copy(X[cid // groups, 0, 0], x)
            T.copy(x, Y[cid, 0, 0])

    return main
"""
)


def test_a_size_is_divided_without_a_rest() -> None:
    """Three groups of four heads would be one head of keys, and the fourth would read behind it."""
    result = by_calls(GROUPS, GROUPS, Call("f", {"heads": 4}), check=None)
    assert result.ok, result.diagnostics
    assert any("groups = 2" in note for note in result.notes)
    wrong = by_calls(GROUPS, GROUPS.replace("cid // groups", "cid"), Call("f", {"heads": 4}), check=None)
    assert not wrong.ok
