"""Divisions by a value of the row: what NumPy divides, with divisors whose reciprocals float16 does not hold."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tests.passes.support import CONFIGS, IMPORTS, kernel
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

SHAPE = (64, 64)
ULP = 2.0**-10
SPELLED = {
    "y[i, j] = x[i, j] / d[i]": (64,),
    "y[i, j] = x[i, j] / d[i, 0]": (64, 1),
    "x[i, j] /= d[i]\n    y[i, j] = x[i, j]": (64,),
    "y[i, j] = (x[i, j] * 2.0) / (d[i] * 2.0)": (64,),
    "s = d[i]\n    y[i, j] = x[i, j] / s": (64,),
    "y[i, j] = T.max(x[i, j], x[i, j]) / d[i]": (64,),
}


def data() -> tuple[np.ndarray, np.ndarray]:
    """Rows that are normalised by sums from subnormal to large; zeros of both signs, infinities, NaN."""
    draw = np.random.default_rng(4)
    x = (draw.uniform(-1, 1, SHAPE) * np.exp2(draw.integers(-20, 3, (64, 1)))).astype(np.float16)
    d = np.abs(x.astype(np.float32)).max(axis=1).astype(np.float16)
    d[:6] = [6e-8, 1.2e-5, 0.0, np.inf, 1.5e-5, 65504]
    d[6] = -0.0
    x[7, :4] = [np.inf, -np.inf, np.nan, -0.0]
    return x, d


def text(body: str, divisors: tuple[int, ...], dtype: str = "float16") -> str:
    params = f'X: T.Tensor({SHAPE}, "{dtype}"), D: T.Tensor({divisors}, "{dtype}"), Y: T.Tensor({SHAPE}, "{dtype}")'
    tiles = f'x = T.alloc_fragment({SHAPE}, "{dtype}")\ny = T.alloc_fragment({SHAPE}, "{dtype}")\n'
    loads = f'd = T.alloc_fragment({divisors}, "{dtype}")\nT.copy(X, x)\nT.copy(D, d)\n'
    loop = f"for i, j in T.Parallel{SHAPE}:\n    {body}\nT.copy(y, Y)"
    return gpu_file(params, tiles + loads + loop, launch="T.Kernel(1, threads=128) as bx")


def close(found: np.ndarray, wanted: np.ndarray, relative: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), relative, 6e-8)
        zero = wanted == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("body", SPELLED)
def test_halves(body: str) -> None:
    x, d = data()
    with np.errstate(all="ignore"):
        wanted = (x.astype(np.float32) / d.astype(np.float32)[:, None]).astype(np.float16)
    if "2.0" in body:  # doubling the largest numbers leaves the range of float16, on a GPU too
        x, d, wanted = x[8:].repeat(2, 0)[:64], d[8:].repeat(2)[:64], wanted[8:].repeat(2, 0)[:64]
    new = migrated(text(body, SPELLED[body]))
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": x, "D": d.reshape(SPELLED[body])}, reading=reading)["Y"]
        close(found, wanted, ULP)


def test_a_quotient_that_is_rounded_next_is_one() -> None:
    """127.5 / 0.1 and the like: at a tie the last bit decides."""
    draw = np.random.default_rng(9)
    d = draw.uniform(0.01, 10, 64).astype(np.float32)
    x = ((draw.integers(-200, 200, SHAPE) + 0.5) * d[:, None]).astype(np.float32)
    new = migrated(text("y[i, j] = T.round(x[i, j] / d[i])", (64,), "float32"))
    for reading in (IDEAL, ACTUAL):
        found = run(new, {"X": x, "D": d}, reading=reading)["Y"]
        np.testing.assert_array_equal(found, np.rint(x / d[:, None]))


def ascend(statements: str) -> str:
    params = ('A: T.Tensor((64, 64), "float16")', 'O: T.Tensor((64, 64), "float16")')
    body = 'a = T.alloc_ub((32, 64), "float16")\nd = T.alloc_ub((32,), "float16")\nT.tile.fill(d, 1e-5)\n'
    body += f"T.copy(A[cid * 32, 0], a)\n{statements}\nT.copy(a, O[cid * 32, 0])"
    launch = "T.Kernel(2, threads=1, is_npu=True) as (cid)"
    return IMPORTS + CONFIGS + kernel(body, params=params, jit="out_idx=[1], pass_configs=pass_configs", launch=launch)


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ("for i, j in T.Parallel(32, 64):\n    a[i, j] = a[i, j] / d[i]", ["TL712"]),
        ("for i in T.serial(32):\n    T.tile.div(a[i, :], a[i, :], d[i])", ["TL712"]),
        ('t = T.alloc_ub((32, 64), "float16")\nT.tile.broadcast(t, d, axis=1)\nT.tile.div(a, a, t)', []),
    ],
)
def test_what_the_compiler_makes_of_it(statements: str, code: list[str]) -> None:
    """``half(1.0f / 1e-5)`` is infinite, and 0 times it is NaN."""
    found = run(ascend(statements), {"A": np.zeros((64, 64), np.float16)})["O"]
    assert np.isnan(found.astype(np.float32)).all() == bool(code)
    said = [d.code for d in check_text(ascend(statements), "k.py", Options()).diagnostics if d.code == "TL712"]
    assert said == code
