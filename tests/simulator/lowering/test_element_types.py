"""A kernel that uses an operator on an element type without an instruction fails, with the line."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.simulated import run
from tests.passes.support import CONFIGS, IMPORTS, kernel
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.simulator.errors import SimulatorError

LOOP = "for i, j in T.Parallel(32, 64):\n    "
WRONG = [
    ("int8", "T.tile.add(x, x, x)"),
    ("int8", "T.tile.fill(x, 1)"),
    ("int32", "T.tile.abs(x, x)"),
    ("int32", "T.tile.bitwise_and(x, x, x)"),
    ("bfloat16", "T.tile.mul(x, x, 2.0)"),
    ("uint8", "T.tile.max(x, x, x)"),
    ("int8", f"{LOOP}x[i, j] = x[i, j] + x[i, j]"),
    ("bfloat16", f"{LOOP}x[i, j] = x[i, j] * x[i, j]"),
]
RIGHT = [
    ("int16", "T.tile.add(x, x, x)"),
    ("int32", "T.tile.bitwise_lshift(x, x, 2)"),
    ("uint8", "T.copy(x, x)"),
    ("int32", f"{LOOP}x[i, j] = x[i, j] + x[i, j]"),
]


def text(dtype: str, statement: str) -> str:
    params = (f'A: T.Tensor((64, 64), "{dtype}")', f'O: T.Tensor((64, 64), "{dtype}")')
    body = f'x = T.alloc_ub((32, 64), "{dtype}")\nT.copy(A[cid * 32, 0], x)\n{statement}\nT.copy(x, O[cid * 32, 0])'
    launch = "T.Kernel(2, threads=1, is_npu=True) as (cid)"
    return IMPORTS + CONFIGS + kernel(body, params=params, jit="out_idx=[1], pass_configs=pass_configs", launch=launch)


def given(dtype: str) -> dict[str, np.ndarray]:
    return {"A": np.ones((64, 64), "float32" if dtype == "bfloat16" else dtype)}


@pytest.mark.parametrize(("dtype", "statement"), WRONG)
def test_the_simulator_and_the_check_say_so(dtype: str, statement: str) -> None:
    with pytest.raises(SimulatorError, match="instruction for"):
        run(text(dtype, statement), given(dtype))
    found = check_text(text(dtype, statement), "k.py", Options()).diagnostics
    assert [d.code for d in found if d.severity == "error"] == ["TL710"]
    there = check_text(text(dtype, statement), "k.py", Options(device="A5")).diagnostics
    assert "TL710" not in {d.code for d in there}, "the table is that of A2 and A3"


@pytest.mark.parametrize(("dtype", "statement"), RIGHT)
def test_neither_minds_what_exists(dtype: str, statement: str) -> None:
    run(text(dtype, statement), given(dtype))
    assert not [d for d in check_text(text(dtype, statement), "k.py", Options()).diagnostics if d.severity == "error"]
