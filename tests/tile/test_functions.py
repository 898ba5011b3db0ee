"""The table of functions, against NumPy: formulas for every element type, and kernels that use them on both NPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file
from tests.passes.simulated import run
from tl2npu.dialects.functions import FUNCTIONS, NAMES
from tl2npu.dialects.gpu import OPERATORS as GPU
from tl2npu.dialects.triton.operators import ELEMENTWISE
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes.npuir.formulas import FORMULAS
from tl2npu.tile.expr import Call, Const, Expr, Load, walk
from tl2npu.tile.meaning import Formula, parts_of
from tl2npu.triton.result import migrate_triton

_TYPES: Mapping[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_EXACT: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "exp10": lambda x: np.power(10.0, x),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}
"""Names that NumPy has not, or calls otherwise."""
_ACCURATE = {name: row for name, row in FUNCTIONS.items() if row.formula}


def exact(name: str, *values: Any) -> Any:
    """What a function gives, in float64."""
    with np.errstate(all="ignore"):
        return (_EXACT.get(name) or getattr(np, name, None) or getattr(np, f"arc{name[1:]}"))(*values)


def drawn(dtype: str) -> np.ndarray:
    """Numbers of every size, and where functions overflow, have a pole, or end."""
    rng = np.random.default_rng(7)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 11.1, 20.0, -20.0, 88.8, -88.8, 89.3, 90.0, -90.0, 127.5, 38.4]
    special += [np.inf, -np.inf, np.nan, 3.4e38, 1e-38, 4.0, -4.0]
    usual, wide, small = rng.normal(size=1000) * 2, rng.uniform(-100, 100, 1000), 10.0 ** rng.uniform(-30, 0, 20)
    with np.errstate(over="ignore"):
        return np.concatenate([special, usual, wide, small, -small]).astype(_TYPES[dtype])


def computed(formula: Formula, x: np.ndarray) -> np.ndarray:
    """A formula in float32, each part rounded once."""

    def value(part: Expr) -> Any:
        match part:
            case Load(name):
                return known[name]
            case Const(number):
                return np.float32(number)
            case Call(op, args):
                with np.errstate(all="ignore"):
                    return exact(op, *(np.float64(value(arg)) for arg in args)).astype(np.float32)
        raise AssertionError(part)

    known = {"x": x.astype(np.float32)}
    for name, step in formula.steps:
        known[name] = value(step)
    return np.asarray(value(formula.value))


def agree(found: np.ndarray, expected: np.ndarray, close: float, dtype: str) -> None:
    """Infinities and NaN are where they must be, and numbers are as close as the table says, rounded to the type."""
    found, expected = found.astype(np.float64), np.where(np.abs(expected) < 1e-37, 0.0, expected)
    limit = float(ml_dtypes.finfo(_TYPES[dtype]).max)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = expected.astype(_TYPES[dtype]).astype(np.float64)
        sure = ~(np.abs(np.abs(expected) / limit - 1) < 2 * float(ml_dtypes.finfo(_TYPES[dtype]).eps) + close)
    np.testing.assert_array_equal(np.isfinite(found[sure]), np.isfinite(rounded[sure]))
    np.testing.assert_array_equal(found[~np.isfinite(rounded) & sure], rounded[~np.isfinite(rounded) & sure])
    numbers = np.isfinite(rounded) & sure
    error = np.abs(found[numbers] - rounded[numbers]) / np.maximum(1.0, np.abs(rounded[numbers]))
    step = 0.0 if dtype == "float32" else float(ml_dtypes.finfo(_TYPES[dtype]).eps)
    assert error.max() <= close + step, (error.max(), close)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("name", _ACCURATE)
def test_formulas(name: str, dtype: str) -> None:
    formula, x = parts_of(name), drawn(dtype)
    assert formula is not None
    with np.errstate(over="ignore"):
        found = computed(formula, x).astype(_TYPES[dtype])
    agree(found, exact(name, x.astype(np.float64)), _ACCURATE[name].close, dtype)


def test_a_formula_that_overflows_early_is_found() -> None:
    """``(exp(x) + exp(-x)) / 2`` is infinite from 88.73 on, where the hyperbolic cosine still is a number."""
    x = np.array([88.8], np.float32)
    with np.errstate(over="ignore"):
        naive = (np.exp(x) + np.exp(-x)) / 2
    with pytest.raises(AssertionError):
        agree(naive, np.cosh(x.astype(np.float64)), 1e-6, "float32")


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("target", ["ascendc", "npuir"])
@pytest.mark.parametrize("name", _ACCURATE)
def test_kernels(name: str, target: str, dtype: str) -> None:
    """The argument is a sum, so that it is computed once, and the value is a part of an expression."""
    if target == "npuir" and name not in FORMULAS:
        pytest.skip("not on AscendNPU IR, or by an operator on tiles")
    x = np.resize(drawn(dtype), (64, 64))
    body = f"""
    x = T.alloc_fragment((32, 64), "{dtype}")
    y = T.alloc_fragment((32, 64), "{dtype}")
    T.copy(A[bx * 32, 0], x)
    for i, j in T.Parallel(32, 64):
        y[i, j] = T.{name}(x[i, j] + x[i, j])
    T.copy(y, B[bx * 32, 0])
    """
    text = gpu_file(f'A: T.Tensor((64, 64), "{dtype}"), B: T.Tensor((64, 64), "{dtype}")', body)
    result = migrate_text(text, "k.py", Options(target=target))  # type: ignore[arg-type]
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"], result.diagnostics
    assert result.new_text is not None
    assert f"T.{name}(" not in result.new_text
    with np.errstate(all="ignore"):
        twice = (x + x).astype(np.float64)
        found = run(result.new_text, {"A": x})["B"]
    agree(found, exact(name, twice), _ACCURATE[name].close, dtype)


TRITON = """import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, libdevice.NAME(x), mask=at < n)


def host(x):
    n = x.numel()
    y = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
"""


@pytest.mark.parametrize("name", _ACCURATE)
def test_triton_kernels(name: str) -> None:
    result = migrate_triton(TRITON.replace("NAME", name), "k.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"], result.diagnostics
    assert f"T.{name}(" not in (result.new_text or "")


def test_parts_of_formulas_have_no_formula() -> None:
    for name in _ACCURATE:
        formula = parts_of(name)
        assert formula is not None
        for value in (*(step for _, step in formula.steps), formula.value):
            calls = {part.op for part in walk(value) if isinstance(part, Call)}
            assert not calls & _ACCURATE.keys(), name


def test_names() -> None:
    """One meaning each; Triton reads all but ``round``, which libdevice takes away from zero."""
    assert sum(len(row.names) for row in FUNCTIONS.values()) == len(NAMES)
    assert FUNCTIONS.keys() <= GPU.keys()
    assert ELEMENTWISE["fast_expf"] == "exp"
    assert NAMES.keys() - ELEMENTWISE.keys() == {"round"}
