"""Serial loops along the rows of tiles whose iterations do not depend on each other, and those that stay in order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file, migrated
from tl2npu.passes.plain.loops.independent import to_parallel

PARAMS = "X: T.Tensor((2, 64), 'float32'), W: T.Tensor((64, 64), 'float32'), Y: T.Tensor((2, 64), 'float32')"
HEAD = """
x = T.alloc_fragment((64,), 'float32')
y = T.alloc_fragment((64,), 'float32')
m = T.alloc_fragment((1,), 'float32')
own = T.alloc_local((64,), 'float32')
T.copy(X[bx, 0], x)
T.reduce_max(x, m, dim=0)
T.clear(y)
"""
END = "\nT.copy(y, Y[bx, 0])"


def kernel(loop: str) -> str:
    return gpu_file(PARAMS, HEAD + loop + END)


INDEPENDENT = [
    "for i in T.serial(64):\n    y[i] = T.exp(x[i] - m[0])",
    "for i in range(64):\n    y[i] = T.floor(x[i] * 3.0)",
    "for i in T.unroll(64):\n    y[i] += W[bx, i] * x[i]",
    "for i in T.serial(64):\n    y[i] = x[i] * 2.0\n    x[i] = y[i] + m[0]\n    y[i] = y[i] + x[i]",
    "for i in T.serial(64):\n    y[i] = T.if_then_else(x[i] > m[0] * 0.5, x[i], 0.0)",
]


@pytest.mark.parametrize("loop", INDEPENDENT)
def test_iterations_that_store_elements_of_their_own(loop: str) -> None:
    call = loop[loop.index("in ") + 3 : loop.index(":")]
    text = kernel(loop)
    assert after(to_parallel, text) == text.replace(f"in {call}:", "in T.Parallel(64):")
    rng = np.random.default_rng(3)
    inputs = {"X": rng.standard_normal((2, 64), np.float32), "W": rng.standard_normal((64, 64), np.float32)}
    assert "for i in T.serial" not in agree(text, inputs)


@pytest.mark.parametrize(
    "loop",
    [
        "for i in T.serial(64):\n    y[i] = x[i] - x[0]\n    x[i] = y[i]",  # x[0] is overwritten by the first one
        "for i in T.serial(63):\n    x[i + 1] = x[i] + x[i + 1]",  # a running sum
        "for i in T.serial(64):\n    m[0] = m[0] + x[i]",
        "for i in T.serial(64):\n    y[i] = x[63 - i]",
        "for i in T.serial(64):\n    y[i] = W[i, bx]",  # a column
        "for i in T.serial(32):\n    y[i] = x[i]",  # a part of the row
        "for i in T.serial(1, 64):\n    y[i] = x[i]",
        "for i in T.serial(64):\n    y[i] = x[i] * i",  # its number
        "for i in T.serial(64):\n    own[i] = x[i]",  # what each thread has for itself
        "for i in T.serial(64):\n    if x[i] > 0.0:\n        y[i] = x[i]",
        "for i in T.serial(64):\n    Y[bx, i] = x[i]",
    ],
)
def test_all_others_stay_in_order(loop: str) -> None:
    assert after(to_parallel, kernel(loop)) == kernel(loop)


def test_a_vectorized_loop_that_adds_to_one_element_runs_in_order() -> None:
    loop = "for i in T.Parallel(64):\n    for k in T.vectorized(8):\n        y[i] += W[k, i] * x[i]"
    text = kernel(loop)
    assert after(to_parallel, text) == text.replace("T.vectorized", "T.serial")
    rng = np.random.default_rng(4)
    inputs = {"X": rng.standard_normal((2, 64), np.float32), "W": rng.standard_normal((64, 64), np.float32)}
    assert migrated(text) == agree(text.replace("T.vectorized", "T.serial"), inputs)
