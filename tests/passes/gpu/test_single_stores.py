"""TL606: single elements that are stored to global memory; and functions of single values that stand first."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tests.passes.simulated import run

X = np.random.default_rng(5).standard_normal((5, 300)).astype(np.float32)
PARAMS = 'X: T.Tensor((5, 300), "float32"), R: T.Tensor((5,), "float32"), Y: T.Tensor((5, 3), "{0}")'
BODY = """x = T.alloc_shared((128,), "float32")
acc = T.alloc_fragment((1, 128), "float32")
s = T.alloc_fragment((1,), "float32")
T.clear(acc)
for k in T.serial(3):
    T.copy(X[bx, k * 128], x)
    for _i, j in T.Parallel(1, 128):
        acc[_i, j] += x[j]
T.reduce_sum(acc, s, dim=1)
{0}
"""
LAUNCH = "T.Kernel(5, threads=128) as bx"
SUM = X.sum(1)
STORES = {
    "an element": ("Y[bx, 1] = s[0]", 1, SUM),
    "a name for it": ("mean = s[0] / 300\nsquare = mean * mean\nY[bx, 2] = square", 2, (SUM / 300) ** 2),
    "a cast": ('Y[bx, 0] = T.cast(s[0] * 2.0, "{0}")', 0, SUM * 2),
    "in a loop": ("for q in T.serial(3):\n    Y[bx, q] = s[0] + q", 2, SUM + 2),
    "under a condition": (
        "if bx > 1:\n    Y[bx, 0] = s[0]\nelse:\n    Y[bx, 0] = s[0] + 1.0",
        0,
        SUM + (np.arange(5) < 2),
    ),
    "a function of it": ("Y[bx, 0] = T.sqrt(T.abs(s[0]) / T.sqrt(float(4)))", 0, np.sqrt(np.abs(SUM) / 2)),
}


@pytest.mark.parametrize(("line", "column", "wanted"), STORES.values(), ids=STORES.keys())
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_stores_of_single_elements(line: str, column: int, wanted: np.ndarray, dtype: str) -> None:
    """An element stands for itself: those beside it keep what they hold."""
    text = gpu_file(PARAMS.format(dtype), BODY.format(line).replace("{0}", dtype), launch=LAUNCH)
    new = migrated(text)
    before = np.full((5, 3), 7, np.float32)
    found = run(new, {"X": X, "Y": before, "R": SUM})["Y"]
    np.testing.assert_allclose(found[:, column], wanted.astype(np.float32), 2e-3 if dtype == "float16" else 1e-4, 1e-3)
    assert line.startswith("for") or (np.delete(found, column, 1) == 7).all()


def test_an_element_that_is_read_and_stored() -> None:
    line = "R[bx] = R[bx] * 0.5 + s[0]\nY[bx, 0] = s[0]"
    new = agree(gpu_file(PARAMS.format("float32"), BODY.format(line), launch=LAUNCH), {"X": X, "R": SUM[::-1].copy()})
    found = run(new, {"X": X, "R": SUM[::-1].copy()})["R"]
    np.testing.assert_allclose(found, SUM[::-1] * 0.5 + SUM, 1e-4, 1e-4)


def test_one_thread_without_a_name_stores() -> None:
    """``T.get_thread_binding()`` in a condition: all but one thread leave ``R`` alone."""
    line = "Y[bx, 0] = s[0]\nif T.get_thread_binding() == 0:\n    R[bx] = R[bx] * 0.5 + s[0]"
    new = migrated(gpu_file(PARAMS.format("float32"), BODY.format(line), launch=LAUNCH))
    np.testing.assert_allclose(run(new, {"X": X, "R": SUM})["R"], SUM * 1.5, 1e-4, 1e-4)
    assert "get_thread_binding" not in new


def test_the_same_of_several_threads() -> None:
    """``<`` means several threads, which would all add: it stays refused."""
    from tests.passes.gpu.support import refused

    line = "Y[bx, 0] = s[0]\nif T.get_thread_binding() < 2:\n    R[bx] += s[0]"
    assert refused(gpu_file(PARAMS.format("float32"), BODY.format(line), launch=LAUNCH))[0][0] == "TL184"


def test_a_function_before_everything_else() -> None:
    """There is no allocation behind which its tile could stand."""
    body = """r = T.rsqrt(R[bx] * R[bx] + 1.0)
x = T.alloc_shared((300,), "float32")
T.copy(X[bx, 0], x)
for j in T.Parallel(300):
    x[j] = x[j] * r
T.copy(x, Y[bx, 0])
"""
    params = PARAMS.replace("(5, 3)", "(5, 300)").format("float32")
    new = migrated(gpu_file(params, body, launch=LAUNCH))
    found = run(new, {"X": X, "R": SUM})["Y"]
    np.testing.assert_allclose(found, X / np.sqrt(SUM * SUM + 1)[:, None], 1e-4, 1e-4)


def test_stores_of_what_the_cube_core_knows_stay() -> None:
    """Block numbers and elements of tensors need no UB."""
    new = migrated(gpu_file(PARAMS.format("float32"), BODY.format("Y[bx, 0] = s[0]\nY[bx, 1] = R[bx]"), launch=LAUNCH))
    assert "Y[bx, 1] = R[bx]" in new
