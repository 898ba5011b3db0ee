"""Functions of single values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, refused
from tests.passes.simulated import run

RNG = np.random.default_rng(11)
PARAMS = 'G: T.Tensor((2, 4), "float32"), A: T.Tensor((2, 4, 64), "float32"), B: T.Tensor((2, 4, 64), "float32")'
INPUT = {
    "G": np.abs(RNG.standard_normal((2, 4))).astype(np.float32) + 0.1,
    "A": RNG.standard_normal((2, 4, 64)).astype(np.float32),
}


def kernel(value: str, before: str = "") -> str:
    body = f"""
    x = T.alloc_shared((64,), "float32")
    for k in T.serial(4):
        T.copy(A[bx, k, 0], x)
        {before or "pass"}
        gate = {value}
        for j in T.Parallel(64):
            x[j] = x[j] * gate
        T.copy(x, B[bx, k, 0])
    """
    return gpu_file(PARAMS, body)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T.exp2(G[bx, k] * 1.4426950408889634)", np.exp),
        ("T.exp(-G[bx, k])", lambda g: np.exp(-g)),
        ("0.5 * T.log(G[bx, k]) + 1.0", lambda g: 0.5 * np.log(g) + 1.0),
        ("T.exp(T.sqrt(G[bx, k]) - 1.0)", lambda g: np.exp(np.sqrt(g) - 1.0)),
        ("T.sigmoid(G[bx, k]) * T.log2(G[bx, k])", lambda g: np.log2(g) / (1.0 + np.exp(-g))),
    ],
)
def test_of_an_element(value: str, expected) -> None:  # type: ignore[no-untyped-def]
    new = agree(kernel(value), INPUT)
    assert "gate_tile[0]" in new
    assert "T.exp2(" not in new
    found = run(new, INPUT)["B"]
    np.testing.assert_allclose(found, INPUT["A"] * expected(INPUT["G"])[:, :, None], 1e-4, 1e-5)


def test_of_a_name() -> None:
    new = agree(kernel("T.exp(g)", "g = T.cast(G[bx, k], 'float32')"), INPUT)
    assert "T.tile.fill(gate_tile, g)" in new
    assert "gate_arg" not in new


@pytest.mark.parametrize("value", ["T.abs(g)", "T.abs(g) * 2.0", "T.abs(g - 1.0) + T.sqrt(T.abs(g))", "T.abs(-g + k)"])
def test_an_absolute_value_of_a_named_float_is_one_of_a_tile(value: str) -> None:
    """TVM makes it ``tir.fabs``, which the code generator does not resolve."""
    new = agree(kernel(value, "g = G[bx, k]"), INPUT)
    assert not re.findall(r"T\.abs\((?!gate_tile(_\d+)?\[)", new)


def test_an_absolute_value_of_a_number_in_a_loop_is_one_of_a_tile() -> None:
    text = kernel("1.0", "g = G[bx, k]").replace("x[j] * gate", "x[j] * T.abs(g) + T.abs(k - 2)")
    new = agree(text, INPUT)
    assert "T.abs(g)" not in new
    assert "T.abs(k - 2)" in new  # of integers it is a choice


def test_numbers_that_the_host_knows_stay() -> None:
    new = agree(
        kernel("G[bx, k] * math.exp(2.0)").replace("import tilelang\n", "import math\n\nimport tilelang\n"), INPUT
    )
    assert "gate_tile" not in new


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("1 / T.sqrt(T.cast(D, 'float32'))", "sqrt_D = D ** 0.5"),
        ("T.rsqrt(T.float32(D) * 2)", "rsqrt_D = (D * 2) ** -0.5"),
        ("T.exp(-T.float32(D) / 64) + 1.0", "exp_D = math.exp(-D / 64)"),
        ("2.0 / T.sqrt(float(D))", "sqrt_D = float(D) ** 0.5"),
        ("T.exp2(2.0) * T.log2(D)", "log2_D = math.log2(D)"),
    ],
)
def test_of_a_size(value: str, written: str) -> None:
    text = kernel(value).replace("def factory():", "def factory(D=16):")
    assert written in agree(text, INPUT)


def test_of_what_the_kernel_binds() -> None:
    assert refused(kernel("T.sqrt(T.float32(n))", "n = 3")) == [("TL150", 14)]


def test_of_two_values() -> None:
    assert refused(kernel("T.pow(G[bx, k], G[bx, 0])")) == [("TL150", 14)]
