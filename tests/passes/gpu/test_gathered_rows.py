"""TL611: rows that an index picks, on both vector cores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RNG = np.random.default_rng(9)
PARAMS = ", ".join(
    [
        'Q: T.Tensor((32, 64), "float16")',
        'KV: T.Tensor((100, 64), "float16")',
        'IX: T.Tensor((2, 32), "int32")',
        'O: T.Tensor((2, 32, 32), "float32")',
    ]
)
TILES = """q = T.alloc_shared((32, 64), "float16")
kv = T.alloc_shared((32, 64), "float16")
acc = T.alloc_fragment((32, 32), "float32")
T.copy(Q, q)
"""
GATHER = """for i, j in T.Parallel(32, 64):
    kv[i, j] = KV[IX[bx, i], j]
"""
GUARDED = """for i, j in T.Parallel(32, 64):
    kv[i, j] = T.if_then_else(IX[bx, i] >= 0, KV[IX[bx, i], j], 0)
"""
MASK = """mask = T.alloc_fragment((32,), "bool")
for i in T.Parallel(32):
    mask[i] = IX[bx, i] <= 50
"""
MASKED = """for i, j in T.Parallel(32, 32):
    acc[i, j] = T.if_then_else(mask[j], acc[i, j], -1000.0)
T.copy(acc, O[bx, 0, 0])
"""
STORED = """for i, j in T.Parallel(32, 32):
    acc[i, j] = acc[i, j] + 1.0
T.copy(acc, O[bx, 0, 0])
"""
GEMM = "T.gemm(q, kv, acc, transpose_B=True, clear_accum=True)\n"


def _inputs(least: int) -> dict[str, np.ndarray]:
    made = {
        "Q": RNG.standard_normal((32, 64)).astype(np.float16),
        "KV": RNG.standard_normal((100, 64)).astype(np.float16),
    }
    return {**made, "IX": RNG.integers(least, 100, (2, 32), np.int32), "O": np.zeros((2, 32, 32), np.float32)}


def _expected(inputs: dict[str, np.ndarray]) -> np.ndarray:
    found = []
    for index in inputs["IX"]:
        rows = np.where(index[:, None] >= 0, inputs["KV"][index], 0).astype(np.float32)
        found.append(np.where(index <= 50, inputs["Q"].astype(np.float32) @ rows.T, -1000.0))
    return np.array(found)


@pytest.mark.parametrize(("gather", "least"), [(GATHER, 0), (GUARDED, -20)])
@pytest.mark.parametrize("first", [True, False])
def test_each_core_gathers_half_of_the_rows(gather: str, least: int, first: bool) -> None:
    """The mask, a vector along the columns, needs all of the index; the gather has a part of its own."""
    body = TILES + (MASK + gather if first else gather + MASK) + GEMM + MASKED
    inputs = _inputs(least)
    new = agree(gpu_file(PARAMS, body, jit="@tilelang.jit"), inputs, rtol=1e-2, atol=1e-2)
    assert "threads=2" in new
    assert "kv_row = T.alloc_shared((64,)" in new
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(
            run(new, inputs, "factory", (), reading)["O"], _expected(inputs), rtol=1e-2, atol=2e-2
        )


@pytest.mark.parametrize("with_mask", [True, False])
@pytest.mark.parametrize("place", ["first + IX[bx, i]", "IX[bx, i] + first", "IX[bx, i] + F[0] * 2"])
def test_rows_behind_a_first_one(place: str, with_mask: bool) -> None:
    """The first row, a number from a tensor, is added to the index; a mask still reads the index as it was."""
    params = PARAMS.replace("IX: T.Tensor((2, 32)", 'F: T.Tensor((1,), "int32"), IX: T.Tensor((2, 32)')
    gather = GATHER.replace("IX[bx, i]", place)
    body = "first = F[0]\n" + TILES + (MASK if with_mask else "") + gather + GEMM + (MASKED if with_mask else STORED)
    inputs = {**_inputs(0), "F": np.array([7], np.int32)}
    inputs = {name: inputs[name] for name in ("Q", "KV", "F", "IX", "O")}
    inputs["IX"] = inputs["IX"] % 80
    new = agree(gpu_file(params, body, jit="@tilelang.jit"), inputs, rtol=1e-2, atol=1e-2)
    by_two = "first" not in place
    rows = inputs["KV"][inputs["IX"] + (14 if by_two else 7)].astype(np.float32)
    expected = inputs["Q"].astype(np.float32) @ rows.transpose(0, 2, 1)
    expected = np.where(inputs["IX"][:, None, :] <= 50, expected, -1000.0) if with_mask else expected + 1.0
    np.testing.assert_allclose(run(new, inputs, "factory", (), ACTUAL)["O"], expected, rtol=1e-2, atol=2e-2)
    assert ("threads=2" in new) is not by_two


def test_rows_that_something_else_reads_stay_a_tile() -> None:
    """The sum of the gathered rows is computed in UB: one core has them all."""
    body = TILES + MASK + GATHER + GEMM + MASKED
    body += 's = T.alloc_fragment((32,), "float32")\nT.reduce_sum(kv, s, dim=1)\nT.copy(s, O[bx, 0, 0:32])\n'
    new = migrated(gpu_file(PARAMS, body, jit="@tilelang.jit"))
    assert "kv_row" not in new
    assert "threads=1" in new


@pytest.mark.parametrize("index", ["row", "R[bx]"])
def test_rows_of_64_bits_are_converted_where_a_copy_begins(index: str) -> None:
    """TL748: one kernel for rows, `X[row * 2 + 1]`, which picks every row by its number."""
    params = 'R: T.Tensor((2,), "int64"), X: T.Tensor((9, 64), "float32"), O: T.Tensor((2, 64), "float32")'
    body = 'x = T.alloc_shared((64,), "float32")\nrow = R[bx]\n' + f"T.copy(X[{index} * 2 + 1, 0], x)\n"
    new = migrated(gpu_file(params, body + "T.copy(x, O[bx, 0])\n"))
    assert f'X[T.cast({index}, "int32") * 2 + 1, 0]' in new
    tensors = {
        "R": np.array([3, 0]),
        "X": np.arange(9 * 64, dtype=np.float32).reshape(9, 64),
        "O": np.zeros((2, 64), np.float32),
    }
    for reading in (IDEAL, ACTUAL):
        found = run(new, {name: value.copy() for name, value in tensors.items()}, reading=reading)
        np.testing.assert_array_equal(found["O"], tensors["X"][[7, 1]])
