"""Elements behind the end of a tensor, for AscendNPU IR: a GPU loads zeros there and stores nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import gpu_file
from tests.passes.npuir.test_from_gpu import agree
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import IDEAL

ROWS, TILE = 50, 32
PARAMS = f'A: T.Tensor(({ROWS}, 4), "float32"), B: T.Tensor(({ROWS}, 4), "float32"), S: T.Tensor((64,), "float32")'
LAUNCH = "T.Kernel(2, 4, threads=128) as (bx, by)"
HEAD = f'x = T.alloc_fragment(({TILE},), "float32")\n'
LOAD = f"for i in T.Parallel({TILE}):\n    x[i] = A[bx * {TILE} + i, by]\n"
STORE = f"for i in T.Parallel({TILE}):\n    B[bx * {TILE} + i, by] = x[i]\n"


def given() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(3)
    return {"A": draw.standard_normal((ROWS, 4)).astype(np.float32), "S": np.zeros(64, np.float32)}


def test_a_column_ends_with_its_tensor() -> None:
    new = agree(gpu_file(PARAMS, HEAD + LOAD + STORE, launch=LAUNCH), given())
    assert new.count(f"if bx * {TILE} + i < {ROWS}:") == 2
    np.testing.assert_array_equal(run(new, given(), "factory", (), IDEAL)["B"], given()["A"])


def test_zeros_are_what_a_gpu_loads_there() -> None:
    """What is loaded behind the end is stored where it can be seen."""
    store = f"if by == 1:\n    T.copy(x, S[bx * {TILE}])\n"
    new = agree(gpu_file(PARAMS, HEAD + LOAD + store, launch=LAUNCH), given())
    found = run(new, given(), "factory", (), IDEAL)["S"]
    np.testing.assert_array_equal(found, np.concatenate([given()["A"][:, 1], np.zeros(64 - ROWS, np.float32)]))


def test_rows_behind_an_offset_of_a_table() -> None:
    params = f'A: T.Tensor(({ROWS}, 64), "float32"), I: T.Tensor((2,), "int32"), B: T.Tensor((64, 64), "float32")'
    body = f"""
x = T.alloc_fragment(({TILE}, 64), "float32")
for i, j in T.Parallel({TILE}, 64):
    x[i, j] = T.if_then_else(i < 20, A[I[bx] + i, j], 1.0)
T.copy(x, B[bx * {TILE}, 0])
"""
    inputs = {"A": np.random.default_rng(7).standard_normal((ROWS, 64)).astype(np.float32), "I": np.int32([5, 40])}
    new = agree(gpu_file(params, body, launch="T.Kernel(2, threads=128) as bx"), inputs)
    expected = np.ones((64, 64), np.float32)
    expected[:20], expected[TILE : TILE + 10], expected[TILE + 10 : TILE + 20] = inputs["A"][5:25], inputs["A"][40:], 0
    np.testing.assert_array_equal(run(new, inputs, "factory", (), IDEAL)["B"], expected)


@pytest.mark.parametrize("moved", ["x[i, j] = A[bx * 32 + i, j]", "x[i, j] = A[bx * 32 + i, j] + 0.0"])
def test_rows_are_copied_up_to_the_end(moved: str) -> None:
    params = f'A: T.Tensor(({ROWS}, 64), "float32"), B: T.Tensor(({ROWS}, 64), "float32")'
    loop = "for i, j in T.Parallel(32, 64):\n    "
    body = f'x = T.alloc_fragment((32, 64), "float32")\n{loop}{moved}\n{loop}B[bx * 32 + i, j] = x[i, j]\n'
    text = gpu_file(params, body, launch="T.Kernel(2, threads=128) as bx")
    rows = np.random.default_rng(5).standard_normal((ROWS, 64)).astype(np.float32)
    new = agree(text, {"A": rows})
    assert "T.copy(x[0:rows, 0:64], B[bx * 32 : bx * 32 + rows, :])" in new
    assert ("for i, j" in new) == ("0.0" in moved)
    np.testing.assert_array_equal(run(new, {"A": rows}, "factory", (), IDEAL)["B"], rows)


@pytest.mark.parametrize("size", ["64", "i + 1"])
def test_what_lies_inside_has_no_branch(size: str) -> None:
    text = gpu_file(PARAMS.replace(f"({ROWS}, 4)", "(64, 4)"), HEAD + LOAD + STORE, launch=LAUNCH)
    if size != "64":
        text = text.replace(f"B[bx * {TILE} + i, by]", f"B[63 - bx * {TILE} - i, by]")
    new = agree(text, {"A": np.ones((64, 4), np.float32), "S": np.zeros(64, np.float32)})
    assert "if " not in new
