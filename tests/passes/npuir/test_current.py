"""The older spelling of AscendNPU IR kernels, brought up to date."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.npuir.test_from_ascend import ascend, draw, result_of
from tests.passes.simulated import run

LAUNCH = "T.Kernel(2, is_npu=True) as (cid, _)"
TENSORS = 'X: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")'
TILES = """
x = T.alloc_shared((32, 32), "float32")
y = T.alloc_fragment((32, 32), "float32")
"""


def npuir(body: str, params: str = TENSORS) -> str:
    text = ascend(params, TILES + body, LAUNCH)
    return text.replace("out_idx=[-1]", 'out_idx=[-1], target="npuir"')


def brought_up_to_date(text: str) -> str:
    result = result_of(text)
    (kernel,) = result.kernels
    assert (kernel.source, kernel.disposition) == ("npuir", "migrated"), result.diagnostics
    assert result.new_text is not None
    assert result_of(result.new_text).new_text == result.new_text
    x = draw(64, 32)
    np.testing.assert_array_equal(run(result.new_text, {"X": x})["Y"], run(text, {"X": x})["Y"])
    return result.new_text


def test_sizes_go_into_the_regions_of_both_sides() -> None:
    new = brought_up_to_date(npuir("T.copy(X[cid * 32, 0], x, [32, 32])\nT.copy(x, Y[cid * 32, 0], [32, 32])\n"))
    assert "T.copy(X[cid * 32 : cid * 32 + 32, 0 : 32], x[0 : 32, 0 : 32])" in new.replace("0:32", "0 : 32")


def test_a_size_with_fewer_axes_takes_the_last_ones() -> None:
    body = """
    for r in T.serial(32):
        T.copy(X[cid * 32 + r, 0], x[r, 0], [1, 32])
        T.copy(x[r, 0], Y[cid * 32 + r, 0], [32])
    """
    new = brought_up_to_date(npuir(body.replace("\n    ", "\n")))
    assert "x[r, 0:32]" in new
    assert "Y[cid * 32 + r, 0:32]" in new


@pytest.mark.parametrize(("old", "new"), [("exp", "vexp"), ("sigmoid", "vsigmoid"), ("abs", "vabs")])
def test_operators_on_tiles_have_a_name_of_their_own(old: str, new: str) -> None:
    body = f"T.copy(X[cid * 32, 0], x)\nT.{old}(x, y)\nT.copy(y, Y[cid * 32, 0])\n"
    assert f"T.{new}(x, y)" in brought_up_to_date(npuir(body))


def test_the_function_of_one_number_stays() -> None:
    body = """
    T.copy(X[cid * 32, 0], x, [32, 32])
    for i, j in T.Parallel(32, 32):
        y[i, j] = T.exp(x[i, j])
    T.copy(y, Y[cid * 32, 0])
    """
    assert "y[i, j] = T.exp(x[i, j])" in brought_up_to_date(npuir(body.replace("\n    ", "\n")))


def test_the_fourth_argument_of_a_reduction() -> None:
    body = """
    m = T.alloc_shared((32, 1), "float32")
    T.copy(X[cid * 32, 0], x)
    T.reduce_sum(x, m, 1, True)
    T.vadd(x, m, y)
    T.copy(y, Y[cid * 32, 0])
    """
    assert "T.reduce_sum(x, m, 1, clear=True)" in brought_up_to_date(npuir(body.replace("\n    ", "\n")))


def test_what_is_up_to_date_stays() -> None:
    body = "T.copy(X[cid * 32, 0], x, size=[32, 32])\nT.vexp(x, y)\nT.copy(y, Y[cid * 32, 0])\n"
    result = result_of(npuir(body))
    assert result.kernels[0].disposition == "unchanged"
    assert not result.changed


def test_a_region_and_a_size_are_refused() -> None:
    body = "T.copy(X[cid * 32 : cid * 32 + 16, :], x, [32, 32])\nT.copy(x, Y[cid * 32, 0])\n"
    result = result_of(npuir(body))
    assert [d.code for d in result.diagnostics if d.severity == "error"] == ["TL436"]
    assert not result.changed
