"""Names that passes make never meet those of the author; loops are called ``i`` and ``j`` where these are free."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

X = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
ROWS, COLUMNS = np.mgrid[:64, :128]
BODY = """
a = T.alloc_fragment((32, 64), "float32")
b = T.alloc_fragment((32, 64), "float32")
T.copy(X[{y} * 32, {x} * 64], a)
for p, q in T.Parallel(32, 64):
    b[p, q] = {value}
T.copy(b, Y[{y} * 32, {x} * 64])
"""
CAUSAL = "T.if_then_else({y} * 32 + p >= {x} * 64 + q, a[p, q] * {factor}, -1.0)"
TAIL = "T.if_then_else({x} * 64 + q < 100, a[p, q] * {factor}, -1.0)"


def holds(value: str, x: str, y: str, factor: str = "3.0", factory: str = "") -> str:
    body = BODY.format(x=x, y=y, value=value.format(x=x, y=y, factor=factor))
    params = 'X: T.Tensor((64, 128), "float32"), Y: T.Tensor((64, 128), "float32")'
    new = migrated(gpu_file(params, body, launch=f"T.Kernel(2, 2, threads=128) as ({x}, {y})", factory=factory))
    where = ROWS >= COLUMNS if value is CAUSAL else COLUMNS < 100
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, {"X": X}, "factory", (), reading)["Y"], np.where(where, X * 3, -1), 1e-6)
    return new


@pytest.mark.sampled
@pytest.mark.parametrize("value", [CAUSAL, TAIL])
@pytest.mark.parametrize(("x", "y"), [("i", "by"), ("bx", "j"), ("i", "j"), ("j", "i"), ("row", "i"), ("vid", "cid")])
def test_blocks(value: str, x: str, y: str) -> None:
    holds(value, x, y)


@pytest.mark.sampled
@pytest.mark.parametrize("value", [CAUSAL, TAIL])
@pytest.mark.parametrize("name", ["i", "j", "vid", "cid", "column_index"])
def test_variables_of_the_factory(value: str, name: str) -> None:
    holds(value, "bx", "by", name, f"{name} = 3.0")


def test_loops_have_the_usual_names() -> None:
    assert "for i in T.serial(32):" in holds(CAUSAL, "bx", "by")


def test_variables_of_other_loops_are_used_again_beside_them() -> None:
    body = BODY.replace("p, q", "i, j")
    text = body.format(x="bx", y="by", value="T.if_then_else(by * 32 + i >= bx * 64 + j, a[i, j], -1.0)")
    params = 'X: T.Tensor((64, 128), "float32"), Y: T.Tensor((64, 128), "float32")'
    new = migrated(gpu_file(params, text, launch="T.Kernel(2, 2, threads=128) as (bx, by)"))
    assert "for i in T.serial(32):" in new


@pytest.mark.parametrize("name", ["i", "j", "k"])
def test_conversions_in_a_loop(name: str) -> None:
    """The loop that a conversion becomes stands in the loop of the author."""
    body = f"""
    a = T.alloc_shared((4, 64), "int8")
    b = T.alloc_shared((4, 64), "float32")
    T.copy(X[bx * 4, 0], a)
    for {name} in T.serial(4):
        T.copy(a[{name}, :], b[{name}, :])
    T.copy(b, Y[bx * 4, 0])
    """
    x = np.random.default_rng(1).integers(-9, 9, (8, 64)).astype(np.int8)
    new = migrated(gpu_file('X: T.Tensor((8, 64), "int8"), Y: T.Tensor((8, 64), "float32")', body))
    np.testing.assert_array_equal(run(new, {"X": x})["Y"], x)
