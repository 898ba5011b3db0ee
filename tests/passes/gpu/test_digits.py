"""Elements whose indices are the digits of one number."""

from __future__ import annotations

import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import gpu_file
from tl2npu.passes.plain.digits import join

PARAMS = "X: T.Tensor((4, 6, 8), 'float32'), Y: T.Tensor((4, 6, 8), 'float32')"


def kernel(store: str, load: str = "X[0, 0, 0]") -> str:
    body = f"for i in T.Parallel(64):\n    q = bx * 64 + i\n    {store} = {load}"
    return gpu_file(PARAMS, body, launch="T.Kernel(3, threads=128) as bx")


@pytest.mark.parametrize(
    ("index", "new", "shape"),
    [
        ("q // 48, q // 8 % 6, q % 8", "q", "(4 * 6 * 8,)"),
        ("q // 8 // 6, q // 8 % 6, q % 8", "q", "(4 * 6 * 8,)"),
        ("bx, q // 8, q % 8", "bx, q", "(4, 6 * 8)"),
        ("0, (q + 3) // 8, (q + 3) % 8", "0, bx * 64 + i + 3", "(4, 6 * 8)"),
    ],
)
def test_it_is_an_element_of_a_row(index: str, new: str, shape: str) -> None:
    text = after(join, kernel(f"Y[{index}]"))
    assert f"Y_flat = T.Tensor({shape}, 'float32', Y.data)\n" in text
    assert f"Y_flat[{new}] = X[0, 0, 0]" in text


@pytest.mark.parametrize(
    "index",
    [
        "q // 48, q // 8 % 6, q % 7",  # 7 is not the size of the axis
        "q // 48, q // 8 % 5, (q + 1) % 8",
        "q // 48, q % 6, q % 8",
        "q // 48, q // 8 % 6, i",
        "bx // 48, bx // 8 % 6, bx % 8",  # no copy would move more than one element
    ],
)
def test_it_is_not(index: str) -> None:
    assert after(join, kernel(f"Y[{index}]")) == kernel(f"Y[{index}]")


def test_a_tensor_with_two_kinds_of_uses_keeps_its_shape() -> None:
    text = kernel("Y[q // 48, q // 8 % 6, q % 8]", "Y[0, 0, i % 8]")
    assert after(join, text) == text


def test_places_beside_the_digit() -> None:
    """``q % 8 + 3`` lies in the row where the condition says so; a GPU reads 0 behind it."""
    load = "T.if_then_else(q % 8 < 5, X[bx, q // 8, q % 8 + 3], X[bx, q // 8, q % 8 - 5])"
    text = after(join, kernel("Y[0, q // 8, q % 8]", load))
    assert "Y_flat[0, q] = T.if_then_else(q % 8 < 5, X_flat[bx, q + 3], X_flat[bx, q - 5])" in text


@pytest.mark.parametrize(
    "load",
    [
        "X[bx, q // 8, q % 8 + 3]",
        "T.if_then_else(q % 8 < 6, X[bx, q // 8, q % 8 + 3], 0.0)",
        "T.if_then_else(q % 8 < 5, X[bx, q // 8, q % 8 - 3], 0.0)",
        "T.if_then_else(q % 8 < 5, 0.0, X[bx, q // 8, q % 8 + 3])",
    ],
)
def test_places_that_may_lie_behind_the_row(load: str) -> None:
    assert "X_flat" not in after(join, kernel("Y[0, q // 8, q % 8]", load))
