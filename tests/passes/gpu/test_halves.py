"""Python floats beside float16 elements: float32 on a GPU, and for the vectoriser a number in the type of the tile.

What a GPU gives is NumPy's, in float32 and rounded at the store. One operation must give just that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated, result_of
from tests.passes.simulated import made, run
from tl2npu.simulator.ir.stmt import Parallel, walk
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL
from tl2npu.simulator.lowering.parallel_forms import SCALAR, form

SHAPE = (32, 64)
F = np.float32


def inputs() -> np.ndarray:
    """Halves of all magnitudes, 0, the largest, the smallest, and a few whole numbers."""
    rng = np.random.default_rng(3)
    many = rng.choice((-1.0, 1.0), SHAPE) * np.exp2(rng.uniform(-14, 11, SHAPE))
    many[0, :9] = 0.0, 2.0**-24, 65504.0, -65504.0, 1.0, 2.0, -1.0, 0.5, 0.1
    return many.astype(np.float16)


def file(statements: str, dtype: str = '"float16"', args: str = "", more: str = "") -> str:
    body = "".join(f"\n    {line}" for line in statements.splitlines())
    params = f"X: T.Tensor({SHAPE}, {dtype}), {more}Y: T.Tensor({SHAPE}, {dtype})"
    tiles = f"x = T.alloc_fragment({SHAPE}, {dtype})\ny = T.alloc_fragment({SHAPE}, {dtype})\nT.copy(X, x)\n"
    loop = f"for i, j in T.Parallel{SHAPE}:{body}\n"
    return gpu_file(params, f"{tiles}{loop}T.copy(y, Y)", launch="T.Kernel(1, threads=128) as bx", args=args)


def forms(text: str) -> set[str]:
    """What the compiler makes of the loops."""
    (launch,) = made(text.replace("alloc_shared", "alloc_ub"), "factory", ()).launches
    return {form(stmt) for stmt in walk(launch.body) if isinstance(stmt, Parallel)}


ONE = [
    ("y[i, j] = x[i, j] + 0.5", "x[i, j] + T.float16(0.5)", lambda x: x + F(0.5)),
    ("y[i, j] = x[i, j] * -0.125", "x[i, j] * T.float16(-0.125)", lambda x: x * F(-0.125)),
    ("y[i, j] = 3.0 * x[i, j]", "x[i, j] * T.float16(3.0)", lambda x: x * F(3)),
    ("y[i, j] = 1.0 - x[i, j]", "x[i, j] * T.float16(-1.0) + T.float16(1.0)", lambda x: F(1) - x),
    ("y[i, j] = T.max(x[i, j], 0.0)", "T.max(x[i, j], T.float16(0.0))", lambda x: np.maximum(x, F(0))),
    ("y[i, j] = T.max(x[i, j], 0.1)", "T.tile.max(y, x, 0.1)", lambda x: np.maximum(x, F(0.1))),
    ("y[i, j] = T.min(x[i, j] * 2.0, 1e6)", "x[i, j] * T.float16(2.0)", lambda x: np.minimum(x * F(2), F(1e6))),
    ("y[i, j] = x[i, j] * 2", "x[i, j] * 2\n", lambda x: x * F(2)),
    ("y[i, j] = x[i, j]\ny[i, j] *= 0.25", "y[i, j] *= T.float16(0.25)", lambda x: x * F(0.25)),
    ("y[i, j] = T.pow(x[i, j], 2.0)", "x[i, j] * x[i, j]", lambda x: x * x),
    (
        "y[i, j] = T.if_then_else(x[i, j] > 0.5, x[i, j] - 0.5, 0.0)",
        "x[i, j] - T.float16(0.5)",
        lambda x: np.where(x > 0.5, x - F(0.5), F(0)),
    ),
]


@pytest.mark.parametrize(("statements", "line", "wanted"), ONE)
def test_one_operation_is_exact(statements: str, line: str, wanted: Callable[[np.ndarray], np.ndarray]) -> None:
    new = judged(file(statements), wanted, 0.0)
    assert line in new
    assert "float32" not in new


SEVERAL = [
    ("y[i, j] = T.sqrt(T.abs(x[i, j]) + 0.5)", lambda x: np.sqrt(np.abs(x) + F(0.5))),
    ("y[i, j] = (x[i, j] + 1024.0) * 0.5 - 512.0", lambda x: (x + F(1024)) * F(0.5) - F(512)),
    ("y[i, j] = x[i, j] * 1e-8 * 1e8", lambda x: x * F(1e-8) * F(1e8)),
    ("y[i, j] = x[i, j] * 1e6", lambda x: x * F(1e6)),
    ("y[i, j] = x[i, j] / 50000.0", lambda x: x / F(50000)),
    ("y[i, j] = x[i, j] / (T.abs(x[i, j]) + 1e-8)", lambda x: x / (np.abs(x) + F(1e-8))),
    ("v = x[i, j] * 0.1\ny[i, j] = v * v + v", lambda x: x * F(0.1) * (x * F(0.1)) + x * F(0.1)),
    (
        "y[i, j] = T.if_then_else(x[i, j] > 0.1, x[i, j] * 0.5 + 0.1, 0.0)",
        lambda x: np.where(x > F(0.1), x * F(0.5) + F(0.1), F(0)),
    ),
    ("y[i, j] = T.if_then_else(x[i, j] >= 0.1, x[i, j], 0.0)", lambda x: np.where(x >= F(0.1), x, F(0))),
    (
        'y[i, j] = T.cast(x[i, j] * 0.3 + 1.0, "float16") * x[i, j]',
        lambda x: (x * F(0.3) + F(1)).astype(np.float16).astype(F) * x,
    ),
]


@pytest.mark.parametrize(("statements", "wanted"), SEVERAL)
def test_several_operations_are_rounded_once(statements: str, wanted: Callable[[np.ndarray], np.ndarray]) -> None:
    assert '"float32"' in judged(file(statements), wanted, 2.0**-10)


def test_a_number_that_is_rounded_costs_one_rounding() -> None:
    new = judged(file("y[i, j] = x[i, j] * 0.1"), lambda x: x * F(0.1), 2.0**-10)
    assert "x[i, j] * T.float16(0.1)" in new


@pytest.mark.parametrize(
    ("args", "statement", "found"),
    [
        ('dtype="float16"', "y[i, j] = x[i, j] * 0.5", "x[i, j] * T.cast(0.5, dtype)"),
        ('dtype="float32"', "y[i, j] = x[i, j] * 0.5", "x[i, j] * 0.5"),
        ('dtype="float16", scale=0.1', "y[i, j] = x[i, j] * T.cast(scale, dtype)", "x[i, j] * T.cast(scale, dtype)"),
        ('dtype="float16", eps=1e-6', "y[i, j] = x[i, j] + eps", "x_f32[i, j] + eps"),
        ('dtype="float16", n=3', "y[i, j] = x[i, j] * n", "x[i, j] * n"),
    ],
)
def test_types_and_numbers_with_names(args: str, statement: str, found: str) -> None:
    new = migrated(file(statement, "dtype", args))
    assert found in new
    assert SCALAR not in forms(new)


def test_a_run_time_number_is_float32() -> None:
    new = migrated(file("y[i, j] = x[i, j] * s", more="s: T.float32, "))
    assert "x_f32[i, j] * s" in new


def test_bfloat16_is_computed_in_float32() -> None:
    new = migrated(file("y[i, j] = x[i, j] * 0.5", '"bfloat16"'))
    assert "x_f32[i, j] * 0.5" in new


def test_what_is_changed_is_told() -> None:
    result = result_of(file("y[i, j] = x[i, j] + 0.5"))
    assert "TL751" in {change.code for change in result.changes}


LEFT = [
    "x[i, j] = x[i, j] * 0.0 / (T.abs(y[i, j]) + T.float16(2.0))\nx[i, j] = T.exp(x[i, j])",
    "x[i, j] = T.max(x[i, j] - x[i, j], T.float16(1.0) - y[i, j])\nx[i, j] = T.exp(x[i, j])",
    "x[i, j] = (y[i, j] - y[i, j]) - T.exp(x[i, j])",
    "x[i, j] = T.exp(x[i, j]) * 2\nx[i, j] = -(x[i, j] - x[i, j]) - x[i, j]",
]


@pytest.mark.parametrize("statements", LEFT)
def test_functions_stand_apart_from_what_simplifies_to_a_number(statements: str) -> None:
    """The simulator does not simplify, so that the loops are counted in the text."""
    new = migrated(file("y[i, j] = x[i, j]\n" + statements + "\ny[i, j] = x[i, j]"))
    loops = new.split("for i, j in T.Parallel")
    for loop in loops[1:]:
        body = loop.split("T.copy")[0].split("T.tile")[0].split("for ")[0]
        assert not ("T.exp" in body and " - " in body), new


def judged(text: str, wanted: Callable[[np.ndarray], np.ndarray], rtol: float) -> str:
    """Migrate, and compare with NumPy in both readings of the simulator; no loop may be a scalar one."""
    new, x = migrated(text), inputs()
    assert SCALAR not in forms(new), new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = wanted(x.astype(F)).astype(np.float16)
        for reading in (IDEAL, ACTUAL):
            found = run(new, {"X": x}, reading=reading)["Y"]
            atol = 2.0**-24 if rtol else 0.0
            np.testing.assert_allclose(found.astype(F), expected.astype(F), rtol, atol, err_msg=new)
    return new
