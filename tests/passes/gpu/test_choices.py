"""A choice that is stored to an element outside of parallel loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import agree, gpu_file
from tl2npu.passes.gpu.choices import to_branches

PARAMS = "X: T.Tensor((2, 64), 'float32'), Y: T.Tensor((2, 64), 'float32')"
BODY = """
x = T.alloc_fragment((64,), 'float32')
y = T.alloc_fragment((64,), 'float32')
T.copy(X[bx, 0], x)
T.copy(X[bx, 0], y)
for i in T.serial(64):
    {line}
T.copy(y, Y[bx, 0])
"""


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (
            "y[i] = T.if_then_else(i > bx, 7.0, x[i])",
            "if i > bx:\n        y[i] = 7.0\n    else:\n        y[i] = x[i]",
        ),
        ("y[i] = T.if_then_else(i % 2 == 0, x[i], y[i])", "if i % 2 == 0:\n        y[i] = x[i]"),
        (
            "y[i] += T.if_then_else(i < 32, 1.0, x[63 - i])",
            "if i < 32:\n        y[i] += 1.0\n    else:\n        y[i] += x[63 - i]",
        ),
        (
            "y[i] = T.if_then_else(i < 9, 1.0, T.if_then_else(i < 20, 2.0, x[i]))",
            "if i < 9:\n        y[i] = 1.0\n    else:\n        if i < 20:\n            y[i] = 2.0\n"
            "        else:\n            y[i] = x[i]",
        ),
    ],
)
def test_each_value_is_stored_in_a_branch(line: str, written: str) -> None:
    text = gpu_file(PARAMS, BODY.format(line=line))
    assert after(to_branches, text) == gpu_file(PARAMS, BODY.format(line=written))
    assert "if_then_else" not in agree(text, {"X": np.random.default_rng(1).standard_normal((2, 64), np.float32)})


def test_vector_code_selects() -> None:
    text = gpu_file(
        PARAMS, BODY.format(line="y[i] = T.if_then_else(x[i] > 0.5, x[i], 0.5)").replace("serial", "Parallel")
    )
    assert after(to_branches, text) == text
