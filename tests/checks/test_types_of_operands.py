"""TL710: the tiles of an operator have one element type."""

from __future__ import annotations

import pytest

from tl2npu.migration import check_text
from tl2npu.options import Options

TEXT = """import tilelang
import tilelang.language as T

pass_configs = {{
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}}


@tilelang.jit(out_idx=[1], pass_configs=pass_configs)
def widened({args}):
    @T.prim_func
    def main(X: T.Tensor((512, 64), {wide}), Y: T.Tensor((512, 64), {narrow})):
        with T.Kernel(8, threads=1, is_npu=True) as (cid):
            x = T.alloc_shared((64, 64), {wide})
            y = T.alloc_shared((64, 64), {narrow})
            s = T.alloc_shared((64,), {narrow})
            T.copy(X[cid * 64, 0], x)
            T.copy(X[cid * 64, 0], y)
            T.copy(X[cid * 64, 0:64], s)
            {operator}
            T.copy(y, Y[cid * 64, 0])

    return main
"""


def _codes(operator: str, wide: str = '"float32"', narrow: str = '"float16"', args: str = "") -> list[str]:
    text = TEXT.format(args=args, wide=wide, narrow=narrow, operator=operator)
    told = [d for d in check_text(text, "k.py", Options()).diagnostics if "has one type for all" in d.message]
    return [d.code for d in told]


@pytest.mark.parametrize(
    "operator",
    [
        "T.tile.exp(y, x)",
        "T.tile.sigmoid(y, x)",
        "T.tile.add(y, y, x)",
        "T.tile.mul(y, x, 2.0)",
        "T.tile.mul(x, x, s[3])",
    ],
)
def test_two_types(operator: str) -> None:
    assert _codes(operator) == ["TL710"]
    assert _codes(operator, narrow='"float32"') == []


def test_types_behind_names() -> None:
    assert _codes("T.tile.exp(y, x)", "wide", "narrow", 'wide="float32", narrow="float16"') == ["TL710"]
    assert _codes("T.tile.exp(y, x)", "wide", "narrow", 'wide="float32", narrow="float32"') == []
    assert _codes("T.tile.exp(y, x)", "wide", "narrow", "wide, narrow") == []


@pytest.mark.parametrize("operator", ["T.copy(x, y)", "T.tile.cast(y, x, 'CAST_NONE', 4096)", "T.tile.sub(x, x, s[3])"])
def test_conversions_and_single_elements(operator: str) -> None:
    assert _codes(operator) == []


@pytest.mark.parametrize(
    ("dtype", "target", "codes"), [("bfloat16", "", ["TL710"]), ("bfloat16", "pto", []), ("float16", "", [])]
)
def test_the_compiler_cannot_spread_a_vector_of_bfloat16(dtype: str, target: str, codes: list[str]) -> None:
    """For ``ascendc`` it writes ``Broadcast<, 2, 1, false>(...)``, without the type."""
    rows = "for i, j in T.Parallel(64, 64):\n                y[i, j] = s[i]"
    text = TEXT.format(args="", wide=f'"{dtype}"', narrow=f'"{dtype}"', operator=rows)
    text = text.replace("out_idx=[1]", f"out_idx=[1], target={target!r}") if target else text
    told = [d for d in check_text(text, "k.py", Options()).diagnostics if "cannot spread" in d.message]
    assert [d.code for d in told] == codes
