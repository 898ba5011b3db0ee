"""TL108: what the compiler does not split by itself, said so that both vector cores are right."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL

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


def test_a_function_that_counts_its_elements() -> None:
    body = "for i, j in T.Parallel(32, 64):\n    x[i, j] = T.tanh(x[i, j]) * 2.0\n"
    new = agree(_file(body), _inputs())
    assert "threads=2" in new
    assert re.search(r"T\.tile\.sigmoid\(x\w*\[:16, :\], x\w*\[:16, :\]\)", new)


def test_a_cast_by_a_number_of_elements() -> None:
    body = """y = T.alloc_fragment((32, 64), "int8")
m = T.alloc_fragment((32,), "float32")
T.reduce_absmax(x, m, dim=1)
for i, j in T.Parallel(32, 64):
    y[i, j] = T.cast(T.round(x[i, j] / m[i] * 127.0), "int8")
"""
    params = 'X: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "int8")'
    inputs = {"X": _inputs()["X"], "O": np.zeros((64, 64), np.int8)}
    file = _file(body, params).replace("T.copy(x, O", "T.copy(y, O")
    new = agree(file, inputs)
    assert "threads=2" in new
    assert re.search(r'T\.tile\.cast\(x\w*, x\w*, "CAST_RINT", 16 \* 64\)', new)


def test_row_numbers_as_data_are_the_core_s_part_of_a_vector() -> None:
    body = """for i, j in T.Parallel(32, 64):
    x[i, j] = T.if_then_else(bx * 32 + i < 40, x[i, j] * 2.0, 0.0)
"""
    new = agree(_file(body), _inputs())
    assert "T.tile.arith_progression(row_index_rows, vid * 16, 1, 16)" in new
    assert "row_index = " not in new


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


def test_vectors_of_rows_and_columns_that_are_made_element_by_element() -> None:
    """Each core makes all of the vector, and copies its rows wherever they are read next."""
    params = PARAMS.replace('B: T.Tensor((64,), "float32")', 'B: T.Tensor((64, 3), "float32")')
    body = """x = T.alloc_fragment((64, 64), "float32")
b = T.alloc_shared((64,), "float32")
T.copy(X, x)
for k in T.serial(3):
    for i in T.Parallel(64):
        b[i] = B[i, k]
    for i, j in T.Parallel(64, 64):
        x[i, j] = x[i, j] + b[i] - b[j]
    for i in T.Parallel(64):
        b[i] = b[i] * 0.5
    for i, j in T.Parallel(64, 64):
        x[i, j] = x[i, j] * b[i]
T.copy(x, O)
"""
    inputs = {**_inputs(), "B": RNG.standard_normal((64, 3)).astype(np.float32)}
    new = agree(gpu_file(params, body, jit="@tilelang.jit", launch="T.Kernel(1, threads=128) as bx"), inputs)
    assert "threads=2" in new
    assert new.count("T.copy(b[vid * 32 : vid * 32 + 32], b_rows[:32])") == 2


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


def test_the_first_statement_of_the_launch_is_taken_out_of_it() -> None:
    """A launch of one axis begins with its allocations, where the number of the core is bound."""
    body = """b = T.alloc_shared((64,), "float32")
T.copy(B, b)
x = T.alloc_fragment((32, 64), "float32")
T.copy(X[bx * 32, 0], x)
for i, j in T.Parallel(32, 64):
    x[i, j] = T.if_then_else(bx * 32 + i > j, x[i, j] + b[j], 0.0)
"""
    text = gpu_file(PARAMS, body + STORE, jit="@tilelang.jit", launch="T.Kernel(2, threads=128) as bx")
    new = agree(text, _inputs())
    assert "vid = T.get_block_binding(1)" in new


def test_the_number_of_the_core_is_not_negative() -> None:
    """A division of the row needs no correction and no warning."""
    body = """for i, j in T.Parallel(32, 64):
    x[i, j] = T.if_then_else((bx * 32 + i) // 3 < j, x[i, j], 0.0)
"""
    result = result_of(_file(body))
    assert "vid" in (result.new_text or "")
    assert not [d.code for d in result.diagnostics if d.code in ("TL760", "TL761")]
    agree(_file(body), _inputs())


ROWS = """x = T.alloc_fragment((bm, 64), "float32")
b = T.alloc_shared((64,), "float32")
s = T.alloc_fragment((bm,), "float32")
T.copy(X[bx * bm, 0], x)
T.copy(B, b)
T.reduce_sum(x, s, dim=1)
for i, j in T.Parallel(bm, 64):
    x[i, j] = x[i, j] / s[i] + b[j]
T.copy(x, O[bx * bm, 0])
"""


@pytest.mark.parametrize("rows", [16, 3, 1])
def test_the_launch_decides_where_rows_may_be_odd(rows: int) -> None:
    """Right with one core and with two; ``b`` is in front of the launch, which one core does not mind."""
    launch = "T.Kernel(T.ceildiv(64, bm), threads=128) as bx"
    inputs = {**_inputs(), "X": RNG.random((64, 64)).astype(np.float32) + 1}
    new = agree(gpu_file(PARAMS, ROWS, jit="@tilelang.jit", launch=launch, args="bm"), inputs, args=(rows,))
    assert "threads=1 if bm % 2 else 2" in new
    found = run(new, inputs, "factory", (rows,), ACTUAL)["O"]
    expected = inputs["X"] / inputs["X"].sum(1, keepdims=True) + inputs["B"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [16, 3])
def test_a_call_with_even_rows_speaks_for_no_other_call(rows: int) -> None:
    """A default or a call in the file is an example; the old kernel takes an odd number of rows as well."""
    launch = "T.Kernel(T.ceildiv(64, bm), threads=128) as bx"
    inputs = {**_inputs(), "X": RNG.random((64, 64)).astype(np.float32) + 1}
    new = agree(gpu_file(PARAMS, ROWS, jit="@tilelang.jit", launch=launch, args="bm=16"), inputs, args=(rows,))
    assert "threads=1 if bm % 2 else 2" in new
    found = run(new, inputs, "factory", (rows,), ACTUAL)["O"]
    expected = inputs["X"] / inputs["X"].sum(1, keepdims=True) + inputs["B"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_kernel_whose_rows_may_be_odd_and_that_is_wrong_for_another_reason_is_refused_for_that() -> None:
    """Nothing stands in the way of the rows, before the launch asks for their parity and after."""
    params = 'X: T.Tensor((4, 4), "int8"), O: T.Tensor((4, 4), "int8")'
    body = """x = T.alloc_shared((bm, 8), "float32")
T.copy(X[bx * bm, 0], x)
T.copy(x, O[bx * bm, 0])
"""
    text = gpu_file(params, body, launch="T.Kernel(T.ceildiv(4, bm), threads=128) as bx", args="bm=4")
    assert [code for code, _ in refused(text)] == ["TL873"]


@pytest.mark.parametrize("rows", [16, 3])
def test_row_numbers_where_rows_may_be_odd(rows: int) -> None:
    """With one core its number is 0, so that the first row of a core is the first of all."""
    body = """x = T.alloc_fragment((bm,), "float32")
T.copy(B[bx * bm], x)
for i in T.Parallel(bm):
    if (bx * bm + i) % 7 < 3:
        x[i] = x[i] * 2.0
T.copy(x, O[bx * bm])
"""
    params = 'B: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")'
    launch = "T.Kernel(T.ceildiv(64, bm), threads=128) as bx"
    inputs = {"B": _inputs()["B"]}
    new = agree(gpu_file(params, body, launch=launch, args="bm"), inputs, args=(rows,))
    assert "threads=1 if bm % 2 else 2" in new
    assert "vid * (bm // 2)" in new
    found = run(new, inputs, "factory", (rows,), ACTUAL)["O"]
    expected = np.where(np.arange(64) % 7 < 3, inputs["B"] * 2, inputs["B"])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "value", ["T.if_then_else(j < 40, x[i, j], 0.0)", "x[i, j] * T.float32(i)", "T.sigmoid(x[i, j])"]
)
def test_what_only_two_cores_understand_is_not_left_to_the_launch(value: str) -> None:
    """Half of a select or of a sigmoid, and a number of rows."""
    body = ROWS.replace("x[i, j] / s[i] + b[j]", value)
    launch = "T.Kernel(T.ceildiv(64, bm), threads=128) as bx"
    new = agree(gpu_file(PARAMS, body, jit="@tilelang.jit", launch=launch, args="bm"), _inputs(), args=(4,))
    assert "threads=1, is_npu=True" in new


@pytest.mark.parametrize("rows", ["bm", "(bm + 1)"])
def test_half_of_rows_is_not_left_to_the_launch_however_they_are_written(rows: str) -> None:
    """With ``threads=1``, for an odd number, a select of half of the rows would leave the others as they are."""
    body = f"""x = T.alloc_fragment(({rows}, 64), "float32")
T.copy(X[bx * {rows}, 0], x)
for i, j in T.Parallel({rows}, 64):
    x[i, j] = T.if_then_else(x[i, j] > 0.5, x[i, j], -1.0)
T.copy(x, O[bx * {rows}, 0])
"""
    launch = f"T.Kernel(T.ceildiv(64, {rows}), threads=128) as bx"
    new = agree(gpu_file(PARAMS, body, jit="@tilelang.jit", launch=launch, args="bm"), _inputs(), args=(7,))
    assert "threads=1, is_npu=True" in new


@pytest.mark.parametrize("value", ["T.if_then_else(j < 40, x[i, j], 0.0)", "T.round(x[i, j])"])
def test_half_of_another_tile_is_not_left_to_the_launch(value: str) -> None:
    """A number of rows that is written out is even; another tile of the kernel may have an odd one."""
    body = f"""x = T.alloc_fragment((32, 64), "float32")
y = T.alloc_fragment((bm, 64), "float32")
T.copy(X[0, 0], x)
for i, j in T.Parallel(32, 64):
    x[i, j] = {value}
T.copy(x, O[0, 0])
T.copy(X[32, 0], y)
for i, j in T.Parallel(bm, 64):
    y[i, j] = y[i, j] + 1.0
T.copy(y, O[32, 0])
"""
    file = gpu_file(PARAMS, body, jit="@tilelang.jit", launch="T.Kernel(1, threads=128) as bx", args="bm")
    assert "threads=1, is_npu=True" in agree(file, _inputs(), args=(7,))


def test_vectors_that_are_written_in_one_loop_and_read_in_another() -> None:
    """What is copied behind the loop does not take the loop over: rows are numbered in it, too."""
    body = """s = T.alloc_fragment((32,), "float32")
t = T.alloc_fragment((32,), "float32")
T.reduce_sum(x, s, dim=1)
t[0] = 0.0
for i in T.Parallel(31):
    t[i + 1] = s[i]
for i, j in T.Parallel(32, 64):
    x[i, j] = x[i, j] - t[i]
"""
    inputs = _inputs()
    new = migrated(_file(body))
    sums = inputs["X"].sum(1).reshape(2, 32)
    expected = inputs["X"] - np.concatenate([0 * sums[:, :1], sums[:, :-1]], 1).reshape(64, 1)
    np.testing.assert_allclose(run(new, inputs, reading=ACTUAL)["O"], expected, 1e-3, 1e-3)
