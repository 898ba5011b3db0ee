"""Parts of tiles at any byte, and rows of any length: what a GPU computes comes out on the NPU (TL700 to TL703)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RANDOM = np.random.default_rng(7)
BYTES = {"float32": 4, "float16": 2, "int8": 1}


def data(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.integers(-9, 9, shape).astype(dtype)


def changed(text: str) -> set[str]:
    return {change.code for change in result_of(text).changes}


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shift", [1, 8, 16])
def test_a_shift(dtype: str, shift: int) -> None:
    count = 64 - shift
    body = f"""
    s = T.alloc_shared((64,), "{dtype}")
    t = T.alloc_shared((64,), "{dtype}")
    T.copy(X[bx, 0:64], s)
    T.copy(X[bx, 0:64], t)
    T.copy(s[0:{count}], t[{shift}:64])
    T.copy(t, Y[bx, 0:64])
    """
    params = f'X: T.Tensor((2, 64), "{dtype}"), Y: T.Tensor((2, 64), "{dtype}")'
    text = gpu_file(params, body)
    agree(text, {"X": data(2, 64, dtype=dtype)})
    aligned = shift * BYTES[dtype] % 32 == 0
    assert ("TL702" in changed(text)) != aligned


@pytest.mark.parametrize("start", [1, 8])
def test_a_difference(start: int) -> None:
    body = f"""
    x = T.alloc_shared((32, 64), "float32")
    y = T.alloc_shared((32, 64), "float32")
    T.copy(X[bx * 32, 0], x)
    T.clear(y)
    for i, j in T.Parallel(32, 64 - {start}):
        y[i, j] = x[i, j + {start}] - x[i, j]
    T.copy(y, Y[bx * 32, 0])
    """
    x = data(64, 64)
    new = agree(gpu_file('X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")', body), {"X": x})
    assert ("T.serial" in new) == (start % 8 != 0)


def test_a_difference_of_vectors() -> None:
    body = """
    x = T.alloc_shared((65,), "float32")
    y = T.alloc_fragment((64,), "float32")
    T.copy(X[bx, 0:65], x)
    for i in T.Parallel(64):
        y[i] = (x[i + 1] - x[i]) * 2.0
    T.copy(y, Y[bx, 0:64])
    """
    agree(gpu_file('X: T.Tensor((2, 65), "float32"), Y: T.Tensor((2, 64), "float32")', body), {"X": data(2, 65)})


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("first", "second"), [(20, 12), (16, 16), (3, 5)])
def test_a_concatenation(dtype: str, first: int, second: int) -> None:
    width = first + second
    body = f"""
    y = T.alloc_shared((16, {width}), "{dtype}")
    T.copy(A[bx * 16, 0], y[:, 0:{first}])
    T.copy(B[bx * 16, 0], y[:, {first}:{width}])
    T.copy(y, Y[bx * 16, 0])
    """
    params = ", ".join(f'{n}: T.Tensor((32, {w}), "{dtype}")' for n, w in (("A", first), ("B", second), ("Y", width)))
    agree(gpu_file(params, body), {"A": data(32, first, dtype=dtype), "B": data(32, second, dtype=dtype)})


@pytest.mark.parametrize("half", [16, 20])
def test_rope(half: int) -> None:
    body = f"""
    x = T.alloc_shared((32, {2 * half}), "float32")
    c = T.alloc_shared((32, {half}), "float32")
    y = T.alloc_shared((32, {2 * half}), "float32")
    T.copy(X[bx * 32, 0], x)
    T.copy(C[bx * 32, 0], c)
    for i, j in T.Parallel(32, {half}):
        y[i, j] = x[i, j] * c[i, j] - x[i, j + {half}]
        y[i, j + {half}] = x[i, j + {half}] * c[i, j] + x[i, j]
    T.copy(y, Y[bx * 32, 0])
    """
    params = f'X: T.Tensor((64, {2 * half}), "float32"), C: T.Tensor((64, {half}), "float32")'
    text = gpu_file(params + f', Y: T.Tensor((64, {2 * half}), "float32")', body)
    agree(text, {"X": data(64, 2 * half), "C": data(64, half)})
    assert ("TL703" in changed(text)) == (half == 20)


@pytest.mark.parametrize("columns", [20, 24, 33])
def test_rows_of_any_length_stay_vector_instructions(columns: int) -> None:
    body = f"""
    x = T.alloc_shared((32, {columns}), "float32")
    s = T.alloc_fragment(({columns},), "float32")
    T.copy(X[bx * 32, 0], x)
    T.copy(S[0:{columns}], s)
    for i, j in T.Parallel(32, {columns}):
        x[i, j] = x[i, j] * 2.0 + s[j]
    T.copy(x, Y[bx * 32, 4])
    """
    wide = columns + 4
    params = f'X: T.Tensor((64, {wide}), "float32"), S: T.Tensor(({columns},), "float32")'
    text = gpu_file(params + f', Y: T.Tensor((64, {wide}), "float32")', body)
    new = agree(text, {"X": data(64, wide), "S": data(columns)})
    assert "T.serial" not in new
    assert f"T.Parallel(32, {-(-columns // 8) * 8})" in new


def test_a_filter() -> None:
    body = """
    acc = T.alloc_fragment((32, N - K + 1), "float32")
    T.clear(acc)
    for k in T.serial(K):
        for i, j in T.Parallel(32, N - K + 1):
            acc[i, j] += X[bx * 32 + i, j + k] * W[k]
    for i, j in T.Parallel(32, N - K + 1):
        Y[bx * 32 + i, j] = acc[i, j]
    """
    params = 'X: T.Tensor((64, N), "float32"), W: T.Tensor((K,), "float32"), Y: T.Tensor((64, N - K + 1), "float32")'
    x, w = data(64, 40), data(3)
    text = gpu_file(params, body, args="N=40, K=3")
    new = agree(text, {"X": x, "W": w})
    assert "(N - K + 1 + 7) // 8 * 8" in new
    assert "T.serial(32)" not in new


REDUCED = """
x = T.alloc_shared((32, C), "float32")
m = T.alloc_fragment((32,), "float32")
s = T.alloc_fragment(C, "float32")
w = T.alloc_shared((64,), "float32")
T.copy(X[bx * 32, 0], x)
T.copy(W[0], w)
{more}
for i, j in T.Parallel(32, C):
    x[i, j] = x[i, j] * w[i + j] - 20.0
T.reduce_max(x, m, dim=1{clear})
T.reduce_sum(x, s, dim=0)
for i, j in T.Parallel(32, C):
    x[i, j] = x[i, j] / (s[j] + 100000.0) + m[i]
T.copy(x, Y[bx * 32, 0])
"""
REDUCED_PARAMS = ", ".join(
    f'{name}: T.Tensor({shape}, "float32")' for name, shape in (("X", "(64, C)"), ("W", "(64,)"), ("Y", "(64, C)"))
)


@pytest.mark.parametrize("columns", [3, 4, 20])
@pytest.mark.parametrize(("clear", "more"), [("", ""), (", clear=False", "T.fill(m, -30.0)")])
def test_a_reduction_takes_the_columns_that_count(columns: int, clear: str, more: str) -> None:
    """All are below the zeros of the padding; a window that starts anywhere is put into a tile of its own."""
    text = gpu_file(REDUCED_PARAMS, REDUCED.format(clear=clear, more=more), args=f"C={columns}")
    new = agree(text, {"X": data(64, columns), "W": data(64)})
    assert "real_shape=[32, C]" in new
    assert "dim=0)" in new


def test_both_vector_cores_reduce_their_half_of_such_rows() -> None:
    """The compiler halves the rows of ``real_shape`` with the tile (ascend_vid_reduction.cc)."""
    body = """
    x = T.alloc_shared((32, 20), "float32")
    m = T.alloc_fragment((32,), "float32")
    T.copy(X[bx * 32, 0], x)
    T.reduce_max(x, m, dim=1)
    T.copy(m, Y[bx * 32])
    """
    text = gpu_file('X: T.Tensor((64, 20), "float32"), Y: T.Tensor((64,), "float32")', body)
    new = agree(text, {"X": data(64, 20) - 20})
    assert "threads=2" in new


def test_a_tile_whose_elements_are_named_keeps_its_rows() -> None:
    text = gpu_file(REDUCED_PARAMS, REDUCED.format(clear="", more="x[0, 0] = 0.0"), args="C=20")
    result = result_of(text)
    assert {d.code for d in result.diagnostics if d.severity == "error"} <= {"TL164", "TL700"}
    assert result.new_text == text


SQUARE = """
a = T.alloc_fragment((8, 8), "float16")
b = T.alloc_fragment((8, 8), "float16")
T.copy(X[bx * 8, 0], a)
{loop}
T.copy(b, Y[bx * 8, 0])
"""


@pytest.mark.parametrize(
    ("loop", "transposed"),
    [
        ("for i, j in T.Parallel(8, 8):\n    b[i, j] = a[i, j] * 2.0", False),
        ("for i, j in T.Parallel(8, 8):\n    b[i, j] = a[j, i] * 2.0", True),
        ("for i, j in T.Parallel(8, 8):\n    b[j, i] = a[i, j] * 2.0", True),
        ("for j, i in T.Parallel(8, 8):\n    b[i, j] = a[i, j] * 2.0", False),
        ("for j in T.serial(8):\n    for i in T.Parallel(8):\n        b[i, j] = a[i, j] * 2.0", False),
        ("for i in T.serial(8):\n    for j in T.Parallel(8):\n        b[i, j] = a[i, j] * 2.0", False),
        ("for j in T.serial(8):\n    for i in T.Parallel(8):\n        b[j, i] = a[i, j] * 2.0", True),
    ],
)
def test_as_many_rows_as_columns(loop: str, transposed: bool) -> None:
    """Loops over the columns go over the padding, loops over the rows do not."""
    x = data(16, 8, dtype="float16")
    params = 'X: T.Tensor((16, 8), "float16"), Y: T.Tensor((16, 8), "float16")'
    new = migrated(gpu_file(params, SQUARE.format(loop=loop)))
    want = x.reshape(2, 8, 8).transpose(0, 2, 1).reshape(16, 8) if transposed else x
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_array_equal(run(new, {"X": x}, "factory", (), reading)["Y"], 2 * want)


def test_a_row_between_tiles_of_different_types() -> None:
    """Rows of 8 halves are padded to 16 columns, rows of 8 floats are whole blocks."""
    body = """
    h = T.alloc_shared((8, 8), "float16")
    f = T.alloc_shared((8, 8), "float32")
    T.copy(X[bx * 8, 0], f)
    T.copy(X[bx * 8, 0], h)
    T.copy(f[1:2, :], h[0:1, :])
    T.copy(h, Y[bx * 8, 0])
    """
    x = data(16, 8)
    new = migrated(gpu_file('X: T.Tensor((16, 8), "float32"), Y: T.Tensor((16, 8), "float16")', body))
    given = x.copy()
    x[0::8] = x[1::8]
    np.testing.assert_array_equal(run(new, {"X": given})["Y"], x)
