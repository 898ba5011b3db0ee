"""Scales that are powers of two, exact: judged by NumPy's ``frexp`` at and beside every power of two of float32."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

SHAPE = (64, 64)
LOOP = f"for i, j in T.Parallel{SHAPE}:\n    "


def inputs() -> np.ndarray:
    """Every normal power of two, its neighbours, 0, infinity, and random numbers of all magnitudes."""
    powers = (2.0 ** np.arange(-126, 128)).astype(np.float32)
    beside = [np.nextafter(powers, np.float32(np.inf)), np.nextafter(powers[1:], np.float32(0))]
    found = np.concatenate([powers, *beside, np.array([0, np.inf], np.float32)])
    more = np.exp(np.random.default_rng(1).uniform(-80, 80, SHAPE[0] * SHAPE[1] - found.size)).astype(np.float32)
    return np.concatenate([found, more]).reshape(SHAPE)


def exponents(x: np.ndarray, up: bool) -> np.ndarray:
    """ceil or floor of the logarithm to base two, without a logarithm."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    found = np.where((mantissa == 0.5) | (not up), exponent - 1, exponent).astype(np.float64)
    return np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, found))


def file(statements: str, more: str = "", target: str = "float32") -> str:
    params = f'X: T.Tensor({SHAPE}, "float32"), Y: T.Tensor({SHAPE}, "{target}")'
    tiles = (
        f'x = T.alloc_fragment({SHAPE}, "float32")\ny = T.alloc_fragment({SHAPE}, "{target}")\n{more}\nT.copy(X, x)\n'
    )
    return gpu_file(params, f"{tiles}{statements}\nT.copy(y, Y)", launch="T.Kernel(1, threads=128) as bx")


def judged(text: str, x: np.ndarray, wanted: np.ndarray) -> None:
    new = migrated(text)
    told = [d.code for d in result_of(text).diagnostics if d.severity == "warning"]
    assert set(told) <= {"TL742"}  # of a maximum: a logarithm may be NaN
    assert bool(told) == ("T.max" in text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for reading in (IDEAL, ACTUAL):
            found = run(new, {"X": x}, reading=reading)["Y"]
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), f"{reading}\n{new}")


FLOAT_TILE = f'z = T.alloc_fragment({SHAPE}, "float32")'
SCALES = [
    (f"{LOOP}y[i, j] = T.exp2(T.ceil(T.log2(x[i, j])))", ""),
    (f"{LOOP}y[i, j] = T.pow(2.0, T.ceil(T.log2(x[i, j])))", ""),
    (f"{LOOP}y[i, j] = 2 ** T.ceil(T.log2(x[i, j]))", ""),
    (f"{LOOP}e = T.ceil(T.log2(x[i, j]))\n    y[i, j] = T.exp2(e)", ""),
    (f"{LOOP}z[i, j] = T.ceil(T.log2(x[i, j]))\n{LOOP}y[i, j] = T.exp2(z[i, j])", FLOAT_TILE),
    (f"{LOOP}y[i, j] = T.exp2(T.max(T.ceil(T.log2(x[i, j])), -200.0))", ""),
]


@pytest.mark.parametrize(("statements", "more"), SCALES)
def test_scales_rounded_up(statements: str, more: str) -> None:
    x = inputs()
    judged(file(statements, more), x, np.exp2(exponents(x, True)).astype(np.float32))


def test_scales_rounded_down() -> None:
    x = inputs()
    wanted = np.exp2(exponents(x, False)).astype(np.float32)
    judged(file(f"{LOOP}y[i, j] = T.exp2(T.floor(T.log2(x[i, j])))"), x, wanted)


def test_exponents_as_integers() -> None:
    x = np.clip(inputs(), 1e-30, 1e30)
    judged(file(f'{LOOP}y[i, j] = T.cast(T.ceil(T.log2(x[i, j])), "int32")', target="int32"), x, exponents(x, True))


@pytest.mark.parametrize("exponent", ['T.cast(k[i, j], "float32")', "k[i, j]", "T.round(x[i, j])", "-T.floor(x[i, j])"])
def test_powers_of_whole_numbers(exponent: str) -> None:
    x = np.resize(np.arange(-126, 127, dtype=np.float32), SHAPE)
    more = f'k = T.alloc_fragment({SHAPE}, "int32")\n{LOOP}k[i, j] = T.cast(x[i, j], "int32")'
    text = file(f"{LOOP}y[i, j] = T.exp2({exponent})", "")
    text = text.replace("            T.copy(X, x)\n", "            T.copy(X, x)\n" + _indented(more))
    judged(text, x, np.exp2(-x if exponent.startswith("-") else x))


def _indented(text: str) -> str:
    return "".join(f"            {line}\n" for line in text.splitlines())


DOUBTFUL = [
    (f"{LOOP}z[i, j] = T.log2(x[i, j])\n{LOOP}y[i, j] = T.ceil(z[i, j])", FLOAT_TILE),
    (f'{LOOP}y[i, j] = T.cast(T.log2(x[i, j]), "int32")', ""),
    (f"{LOOP}y[i, j] = T.ceil(T.log(x[i, j]) * 1.4426950408889634)", ""),
    (f"{LOOP}y[i, j] = T.floor(T.log10(x[i, j]))", ""),
    (f"{LOOP}y[i, j] = T.if_then_else(T.exp2(x[i, j]) == 4.0, 1.0, 0.0)", ""),
    (f"{LOOP}y[i, j] = T.trunc(T.pow(x[i, j], 1.5))", ""),
]


@pytest.mark.parametrize(("statements", "more"), DOUBTFUL)
def test_roundings_of_what_is_not_exact_are_named(statements: str, more: str) -> None:
    result = result_of(file(statements, more, "int32" if "int32" in statements else "float32"))
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert "TL114" in {d.code for d in result.diagnostics if d.severity == "warning"}


@pytest.mark.parametrize(
    "value", ["T.round(x[i, j] * 2.0)", "T.floor(T.sqrt(x[i, j]))", "T.exp2(x[i, j])", "T.log2(x[i, j])"]
)
def test_nothing_is_said_of_others(value: str) -> None:
    assert "TL114" not in {d.code for d in result_of(file(f"{LOOP}y[i, j] = {value}")).diagnostics}
