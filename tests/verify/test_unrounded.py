"""Sums of products of halves: a GPU rounds the products, the NPU need not; both are right, and nothing else is."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import gpu_file
from tests.verify.support import by_calls
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.verify.settings import Call

BODY = """
a = T.alloc_fragment((32, 64), dtype)
b = T.alloc_fragment((32, 64), dtype)
acc = T.alloc_fragment((32, 64), "float32")
total = T.alloc_fragment((32,), "float32")
T.copy(A[bx * 32, 0], a)
T.copy(B[bx * 32, 0], b)
for i, j in T.Parallel(32, 64):
    acc[i, j] = a[i, j] * b[i, j]
T.reduce_sum(acc, total, dim=1)
T.copy(total, Y[bx * 32])
"""


def old(dtype: str) -> str:
    params = 'A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype), Y: T.Tensor((64,), "float32")'
    return gpu_file(params, BODY, factory=f'dtype = "{dtype}"')


def new(dtype: str) -> tuple[str, list[str]]:
    result = migrate_text(old(dtype), "k.py", Options())
    assert result.new_text is not None
    return result.new_text, [d.message for d in result.diagnostics if d.code == "TL144"]


CALL = Call("factory", {})


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_product_kept_in_float32_is_right_and_said(dtype: str) -> None:
    text, said = new(dtype)
    assert said == [f"wrote float32 for `a[i, j] * b[i, j]`, which a GPU rounds to `{dtype}`: the result is more exact"]
    result = by_calls(old(dtype), text, CALL, check=None)
    assert result.ok
    assert result.comparisons[0].unrounded == ("Y",)
    assert 1e-3 < (result.comparisons[0].max_error or 0) < 1
    assert any("Y agrees with the old kernel if its intermediate rounding" in note for note in result.notes)


def test_the_rounded_result_is_right_too() -> None:
    result = by_calls(
        old("bfloat16"), old("bfloat16").replace("a[i, j] * b[i, j]", "b[i, j] * a[i, j]"), CALL, check=None
    )
    assert result.ok
    assert result.comparisons[0].unrounded == ()


@pytest.mark.parametrize(
    "wrong", ["T.cast(a[i, j], 'float32') * b[i, j] * 1.001", "T.cast(a[i, j], 'float32') * b[i, 0]"]
)
def test_what_agrees_with_neither_is_wrong(wrong: str) -> None:
    result = by_calls(old("bfloat16"), old("bfloat16").replace("a[i, j] * b[i, j]", wrong), CALL, check=None)
    assert not result.ok
    assert [d.code for d in result.diagnostics] == ["TL907"]
