"""TL108: what the compiler does not split by itself, said so that both vector cores are right."""

from __future__ import annotations

import numpy as np

from tests.passes.gpu.support import agree, gpu_file, migrated, result_of

RNG = np.random.default_rng(5)
PARAMS = 'X: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32"), O: T.Tensor((64, 64), "float32")'
LOAD = """x = T.alloc_fragment((32, 64), "float32")
T.copy(X[bx * 32, 0], x)
"""
STORE = "T.copy(x, O[bx * 32, 0])\n"


def _inputs() -> dict[str, np.ndarray]:
    made = {"X": RNG.standard_normal((64, 64)), "B": RNG.standard_normal(64), "O": np.zeros((64, 64))}
    return {name: value.astype(np.float32) for name, value in made.items()}


def _file(body: str, params: str = PARAMS) -> str:
    return gpu_file(params, LOAD + body + STORE, jit="@tilelang.jit", launch="T.Kernel(2, threads=128) as bx")


def test_a_vector_along_the_columns_is_in_front_of_the_launch() -> None:
    body = """b = T.alloc_shared((64,), "float32")
T.copy(B, b)
for i, j in T.Parallel(32, 64):
    x[i, j] = x[i, j] * (b[j] + 1.0)
"""
    new = agree(_file(body), _inputs())
    assert "threads=2" in new
    front, launched = new.split("T.Kernel(")
    assert "b = T.alloc_ub((64,)" in front
    assert "b_tmp = T.alloc_ub((64,)" in front or "alloc" in launched


def test_a_condition_on_rows_and_columns() -> None:
    body = """for i, j in T.Parallel(32, 64):
    x[i, j] = T.if_then_else(bx * 32 + i >= j, x[i, j], -1.0)
"""
    new = agree(_file(body), _inputs())
    assert "vid = T.get_block_binding(1)" in new
    assert "T.float32(i + vid * 16)" in new
    assert "T.tile.select(x[:16, :], mask, x[:16, :], -1.0" in new


def test_row_numbers_as_data_are_the_core_s_part_of_a_vector() -> None:
    body = """for i, j in T.Parallel(32, 64):
    x[i, j] = T.if_then_else(bx * 32 + i < 40, x[i, j] * 2.0, 0.0)
"""
    new = agree(_file(body), _inputs())
    assert "T.copy(row_index[vid * 16 : vid * 16 + 16], row_index_rows[:16])" in new


def test_a_vector_that_belongs_to_rows_and_to_columns() -> None:
    params = 'X: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32"), O: T.Tensor((64, 64), "float32")'
    body = """x = T.alloc_fragment((64, 64), "float32")
b = T.alloc_shared((64,), "float32")
T.copy(X, x)
T.copy(B, b)
for i, j in T.Parallel(64, 64):
    x[i, j] = x[i, j] + b[i] - b[j]
T.copy(x, O)
"""
    new = agree(gpu_file(params, body, jit="@tilelang.jit", launch="T.Kernel(1, threads=128) as bx"), _inputs())
    assert "threads=2" in new
    assert "b_rows[:32]" in new


def test_each_core_adds_its_rows() -> None:
    body = """b = T.alloc_shared((64,), "float32")
T.copy(B, b)
for i, j in T.Parallel(32, 64):
    x[i, j] = x[i, j] + b[j]
for i, j in T.Parallel(32, 64):
    T.atomic_add(O[bx * 32 + i, j], x[i, j])
"""
    text = gpu_file(PARAMS, LOAD + body, jit="@tilelang.jit", launch="T.Kernel(2, threads=128) as bx")
    new = agree(text, _inputs())
    assert "threads=2" in new
    assert "bx * 32 + vid * 16" in new
    assert "x[:16, :]" in new


def test_what_has_no_halves_keeps_one_core() -> None:
    body = """peak = T.alloc_fragment((64,), "float32")
T.reduce_max(x, peak, dim=0)
for i, j in T.Parallel(32, 64):
    x[i, j] = x[i, j] - peak[j]
"""
    new = agree(_file(body), _inputs())
    assert "threads=1" in new
    assert "vid" not in new
    assert "alloc_ub((64,)" not in new.split("T.Kernel(")[0]


def test_one_core_that_was_asked_for() -> None:
    body = """for i, j in T.Parallel(32, 64):
    x[i, j] = T.if_then_else(bx * 32 + i >= j, x[i, j], -1.0)
"""
    new = migrated(_file(body), "1")
    assert "vid" not in new
    assert [change.code for change in result_of(_file(body), "1").changes if change.code == "TL108"] == []


def test_the_first_statement_may_be_a_tile_that_is_taken_out() -> None:
    """The core's number is bound in front of it, after it has gone."""
    body = """
    w = T.alloc_fragment((64,), "float32")
    x = T.alloc_fragment((32, 64), "float32")
    T.copy(X[0, 0], w)
    T.copy(X[bx * 32, 0], x)
    for i, j in T.Parallel(32, 64):
        x[i, j] = T.if_then_else(bx * 32 + i >= j, x[i, j] + w[j], 0.0)
    T.copy(x, Y[bx * 32, 0])
    """
    params = 'X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")'
    x = np.random.default_rng(4).standard_normal((64, 64)).astype(np.float32)
    new = agree(gpu_file(params, body), {"X": x})
    assert "vid = T.get_block_binding(1)" in new
