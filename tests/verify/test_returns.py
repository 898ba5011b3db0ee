"""What a call takes and returns, and from which kernel the tolerance comes."""

from __future__ import annotations

import pytest

from tests.verify.support import HEAD, MAIN, SCRIPT, by_calls, by_script
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.verify.settings import Call

TWO = """

@tilelang.jit(out_idx=[2, 3], pass_configs=pass_configs)
def both(rows):
    @T.prim_func
    def main(
        A: T.Tensor((rows, 64), "float32"),
        B: T.Tensor((rows, 64), "float32"),
        Sum: T.Tensor((rows, 64), "float32"),
        Product: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(rows // 32, is_npu=True) as (cid, vid):
            a = T.alloc_ub((16, 64), "float32")
            b = T.alloc_ub((16, 64), "float32")
            c = T.alloc_ub((16, 64), "float32")
            T.copy(A[cid * 32 + vid * 16, 0], a)
            T.copy(B[cid * 32 + vid * 16, 0], b)
            T.tile.add(c, a, b)
            T.copy(c, Sum[cid * 32 + vid * 16, 0])
            T.tile.mul(c, a, b)
            T.copy(c, Product[cid * 32 + vid * 16, 0])

    return main
"""
OF_TWO = Call("both", {"rows": 64})
A, B = '        A: T.Tensor((rows, 64), "float32"),\n', '        B: T.Tensor((rows, 64), "float32"),\n'

WRONG_CALLS = {
    "the other order": ("out_idx=[2, 3]", "out_idx=[3, 2]", "a call returns (Sum, Product) in the old kernel, "),
    "one is given": ("out_idx=[2, 3]", "out_idx=[3]", "a call returns (Sum, Product) in the old kernel, (Product) in"),
    "all are given": ("out_idx=[2, 3], ", "", "a call returns (Sum, Product) in the old kernel, nothing in"),
    "an input": ("out_idx=[2, 3]", "out_idx=[1, 2, 3]", "a call returns (Sum, Product) in the old kernel, (B, Sum, "),
    "a workspace": ("out_idx=[2, 3]", "out_idx=[3], workspace_idx=[2]", "returns (Sum, Product) in the old kernel, "),
    "the parameters": (A + B, B + A, "a call takes (A, B) in the old kernel, (B, A) in the new one"),
    "an element type": (B, B.replace("32)", "16)").replace('"float32"', '"float16"'), "B: the caller passes float32"),
}


@pytest.mark.parametrize(("text", "by", "said"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_call_that_is_another(text: str, by: str, said: str) -> None:
    new = migrate_text(HEAD + TWO, "kernel.py", Options()).new_text or ""
    assert by_calls(HEAD + TWO, new, OF_TWO).ok
    assert text in new
    result = by_calls(HEAD + TWO, new.replace(text, by), OF_TWO)
    assert not result.ok
    assert [k.status for k in result.kernels] == ["failed"]
    assert [d for d in result.diagnostics if said in d.message and d.code == "TL907"]


def test_a_script_may_follow_its_kernel() -> None:
    """Parameters in another order are right where the new script gives them in that order."""
    main = (
        "\n\nif __name__ == '__main__':\n    a = np.ones((64, 64), np.float32)\n    b = a * np.float32(2)\n"
        "    both(64)({})\n"
    )
    swapped = HEAD + TWO.replace(A + B, B + A).replace("T.tile.add(c, a, b)", "T.tile.add(c, b, a)")
    swapped = migrate_text(swapped, "kernel.py", Options()).new_text or ""
    old = HEAD + TWO + main.format("a, b")
    assert by_script(old, swapped + main.format("b, a")).ok
    assert not by_script(old, swapped + main.format("a, b")).ok


MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""
THROUGH_HALF = {
    "a detour": (
        "            T.tile.mul",
        '            h = T.alloc_shared((32, 64), "float16")\n            T.copy(x, h)\n            T.copy(h, x)\n'
        "            T.tile.mul",
    ),
    "the tile": ('(32, 64), "float32"', '(32, 64), "float16"'),
    "bfloat16": ('(32, 64), "float32"', '(32, 64), "bfloat16"'),
}


@pytest.mark.parametrize(("text", "by"), THROUGH_HALF.values(), ids=THROUGH_HALF)
@pytest.mark.parametrize("check", [None, Options()])
def test_what_only_the_new_kernel_rounds_is_a_difference(text: str, by: str, check: Options | None) -> None:
    new = MIGRATED.replace(MAIN, "").replace(text, by, 1)
    assert new != MIGRATED.replace(MAIN, "")
    result = by_calls(SCRIPT, new, check=check)
    assert not result.ok
    assert {"TL907", "TL908"} & {d.code for d in result.diagnostics}


def test_what_the_old_kernel_rounds_may_be_rounded() -> None:
    rounded = SCRIPT.replace(
        "            T.tile.mul",
        '            h = T.alloc_ub((16, 64), "float16")\n            T.copy(x, h)\n            T.copy(h, x)\n'
        "            T.tile.mul",
    )
    assert by_calls(rounded, MIGRATED, check=None).ok
