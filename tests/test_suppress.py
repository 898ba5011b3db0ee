"""Comments that silence findings, and those that silence nothing."""

from __future__ import annotations

import pytest

from tl2npu import check

KERNEL = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def copy(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // 64, threads=128) as bx:  # MARK
            a = T.alloc_fragment((64,), "float32")
            T.copy(A[bx * 64], a)
            T.copy(a, B[bx * 64])

    return main
"""


def told(mark: str) -> list[tuple[str, str]]:
    found = check(KERNEL.replace("MARK", mark), filename="k.py").diagnostics
    return [(item.code, item.message) for item in found if item.code in ("TL815", "TL904")]


@pytest.mark.parametrize(
    "mark",
    ["tl2npu: ignore[TL815]", "tl2npu: ignore[tl815]", "tl2npu: ignore [TL700, TL815]", "why: # tl2npu:ignore[TL815]"],
)
def test_the_finding_is_left_out(mark: str) -> None:
    assert "TL815" not in [code for code, _ in told(mark)]


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("tl2npu: ignore", "it names no code, as in `# tl2npu: ignore[TL830]`"),
        ("tl2npu: ignore[]", "it names no code, as in `# tl2npu: ignore[TL830]`"),
        ("tl2npu: ignore[TL999]", "there is no code TL999"),
        ("tl2npu: ignore[TL700]", "TL700 is not reported here"),
    ],
)
def test_a_comment_that_silences_nothing_is_told(mark: str, why: str) -> None:
    assert ("TL904", why) in told(mark)
    assert "TL815" in [code for code, _ in told(mark)]


def test_other_comments_are_left_alone() -> None:
    assert [code for code, _ in told("tl2npu: ignore-file is no such comment")] == ["TL815"]
