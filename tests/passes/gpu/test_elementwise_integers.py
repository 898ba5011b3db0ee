"""Integers that a kernel is given or reads, beside tiles of floats that come from the cube core."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated
from tests.passes.simulated import run
from tl2npu.simulator.ir.dtypes import numpy_dtype
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

PARAMS = (
    'A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), lens: T.Tensor((2,), "int32"), '
    "O: T.Tensor((64, 64), {dtype})"
)
BODY = """
a = T.alloc_shared((32, 64), "float16")
b = T.alloc_shared((64, 64), "float16")
c = T.alloc_fragment((32, 64), {dtype})
T.copy(A[bx * 32, 0], a)
T.copy(B, b)
T.gemm(a, b, c, clear_accum=True)
for i, j in T.Parallel(32, 64):
    {statement}
T.copy(c, O[bx * 32, 0])
"""


def inputs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    tensors = {name: (random.integers(-4, 5, (64, 64)) / 4).astype(np.float16) for name in "AB"}
    return {**tensors, "lens": np.array([39, 7], np.int32)}


@pytest.mark.parametrize(
    "statement", ["c[i, j] = c[i, j] + lens[bx]", "c[i, j] += lens[bx]", "c[i, j] *= (lens[bx] + bx)"]
)
@pytest.mark.parametrize("dtype", ['"float32"', "accum"])
def test_an_integer_of_a_tensor_is_made_a_float_first(statement: str, dtype: str) -> None:
    """Else the loop runs element by element, and loads the sum again for each of them."""
    args = 'accum="float32"' if dtype == "accum" else ""
    new = agree(
        gpu_file(PARAMS.format(dtype=dtype), BODY.format(dtype=dtype, statement=statement), args=args), inputs()
    )
    assert "T.float32(lens_value" in new


@pytest.mark.parametrize(
    ("given", "statement", "expected"),
    [
        ("T.int32", "c[i, j] = c[i, j] + offset", "T.float32(offset)"),
        ("T.int64", "c[i, j] += offset * 2", "T.float32(offset * 2)"),
        ("T.int32", "c[i, j] = c[i, j] + (offset + 1)", "T.float32(offset + 1)"),
        ("T.int32", "c[i, j] -= -offset // 2", "T.float32((-offset) >> 1)"),
        ("T.float32", "c[i, j] = c[i, j] + offset", None),
    ],
)
def test_an_integer_that_the_kernel_is_given(given: str, statement: str, expected: str | None) -> None:
    params = f"offset: {given}, " + PARAMS.format(dtype='"float32"')
    new = migrated(gpu_file(params, BODY.format(dtype='"float32"', statement=statement)))
    assert "T.Parallel(32, 64)" in new
    assert (expected or "c[i, j] + offset") in new
    assert ("T.float32(" in new) == (expected is not None)


def test_an_integer_beside_integers_stays_one() -> None:
    body = 'k = T.alloc_shared((32, 64), "int32")\nT.copy(K[bx * 32, 0], k)\n'
    body += "for i, j in T.Parallel(32, 64):\n    k[i, j] = k[i, j] + offset\nT.copy(k, O[bx * 32, 0])"
    params = 'offset: T.int32, K: T.Tensor((64, 64), "int32"), O: T.Tensor((64, 64), "int32")'
    assert "k[i, j] + offset" in migrated(gpu_file(params, body))


@pytest.mark.parametrize("added", ["bx", "row", "(row + 1)", "bx // 2", "lens[bx]", "(v + bx)"])
def test_whatever_integer_it_is_it_takes_the_type_of_the_elements(added: str) -> None:
    """Beside floats it is made one, in a sum with integers it stays exact: float32 has 24 bits."""
    for dtype, limit in (("float32", 100), ("int32", 2**26)):
        params = f'A: T.Tensor((64, 64), "{dtype}"), lens: T.Tensor((2,), "int32"), O: T.Tensor((64, 64), "{dtype}")'
        body = (
            f'a = T.alloc_shared((32, 64), "{dtype}")\nv = 5 - 2 * bx\nrow = bx * 32\nT.copy(A[row, 0], a)\n'
            f"for i, j in T.Parallel(32, 64):\n    a[i, j] = a[i, j] + {added}\nT.copy(a, O[row, 0])"
        )
        rows = limit + np.arange(64 * 64).reshape(64, 64)
        lens = np.array([limit + 1, limit + 2], np.int32)
        new = agree(gpu_file(params, body), {"A": rows.astype(dtype), "lens": lens}, atol=0, rtol=0)
        assert ("T.float32(" in new) == (dtype == "float32")


def test_the_size_of_a_tensor_is_an_integer() -> None:
    params = PARAMS.format(dtype='"float32"').replace("O: T.Tensor((64,", "O: T.Tensor((rows,")
    body = BODY.format(dtype='"float32"', statement="c[i, j] = c[i, j] + rows")
    assert "T.float32(rows)" in migrated(gpu_file(params, body, factory='rows = T.symbolic("rows")'))


ROW, COLUMN = np.arange(64, dtype=np.int64)[:, None] % 32, np.arange(64, dtype=np.int64)[None, :]
MADE_OF_FLOATS = {
    "T.cast(a[i, j], 'int32') % 7": lambda a, b: a % 7,
    "T.int32(a[i, j]) // 3": lambda a, b: a // 3,
    "a[i, j].astype('int32') % 7": lambda a, b: a % 7,
    "T.cast(a[i, j], 'int32') % 7 + b[i, j]": lambda a, b: a % 7 + b,
}
OF_INDICES = {
    "b[i, j] + j % 3": lambda a, b: b + COLUMN % 3,
    "(i // 2 + 3) * b[i, j]": lambda a, b: (ROW // 2 + 3) * b,
    "b[i, j] - (i // 2 - j % 3)": lambda a, b: b - (ROW // 2 - COLUMN % 3),
    "T.max(b[i, j], j % 5) - b[i, j]": lambda a, b: np.maximum(b, COLUMN % 5) - b,
    "T.if_then_else(b[i, j] > j % 3, b[i, j], i // 2)": lambda a, b: np.where(b > COLUMN % 3, b, ROW // 2),
    "T.if_then_else(b[i, j] == j % 3 + 2147483640, 1, b[i, j])": lambda a, b: np.where(
        b == COLUMN % 3 + 2147483640, 1, b
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("expression", [*MADE_OF_FLOATS, *OF_INDICES])
def test_integers_are_not_made_floats(expression: str, dtype: str) -> None:
    """Neither those that floats were converted to, nor those that are computed of indices only."""
    if dtype != "float32" and expression in OF_INDICES:
        pytest.skip("no float is read")
    random = np.random.default_rng(5)
    a = random.integers(-90, 90, (64, 64))
    b = random.integers(-(2**31), 2**31, (64, 64))
    b[::3, ::2], b[1::3, ::2] = random.integers(-4, 4, (22, 32)), 2147483640 + random.integers(0, 4, (21, 32))
    params = f"A: T.Tensor((64, 64), '{dtype}'), B: T.Tensor((64, 64), 'int32'), O: T.Tensor((64, 64), 'int32')"
    body = f"""
a = T.alloc_shared((32, 64), '{dtype}')
b = T.alloc_shared((32, 64), 'int32')
o = T.alloc_fragment((32, 64), 'int32')
T.copy(A[bx * 32, 0], a)
T.copy(B[bx * 32, 0], b)
for i, j in T.Parallel(32, 64):
    o[i, j] = {expression}
T.copy(o, O[bx * 32, 0])
"""
    new = migrated(gpu_file(params, body))
    given = {"A": a.astype(numpy_dtype(dtype)), "B": b.astype(np.int32)}
    want = {**MADE_OF_FLOATS, **OF_INDICES}[expression](a, b).astype(np.int32)
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_array_equal(run(new, given, "factory", (), reading)["O"], want, err_msg=reading)


@pytest.mark.parametrize("value", ["(x[i, j] + 5) - T.min(y[i, j], x[i, j])", "T.max(y[i, j], x[i, j]) - x[i, j]"])
def test_a_maximum_in_a_difference_has_a_tile_of_its_own(value: str) -> None:
    """The compiler dies of ``max(x + 5 - y, 5)``, which it makes of the first."""
    body = f"""
    x = T.alloc_shared((32, 64), "int32")
    y = T.alloc_shared((32, 64), "int32")
    T.copy(A[bx * 32, 0], x)
    T.copy(B[bx * 32, 0], y)
    for i, j in T.Parallel(32, 64):
        x[i, j] = {value}
    T.copy(x, O[bx * 32, 0])
    """
    params = ", ".join(f'{name}: T.Tensor((64, 64), "int32")' for name in "ABO")
    a, b = np.random.default_rng(2).integers(-99, 99, (2, 64, 64)).astype(np.int32)
    new = migrated(gpu_file(params, body))
    expected = a + 5 - np.minimum(a, b) if "5" in value else np.maximum(a, b) - a
    np.testing.assert_array_equal(run(new, {"A": a, "B": b}, "factory", (), ACTUAL)["O"], expected)
    assert not [line for line in new.splitlines() if "- " in line and ("T.max" in line or "T.min" in line)]


SCALAR = np.repeat(np.float32([-0.5, 1.75]), 32)[:, None]
BESIDE_A_FLOAT = {
    "s + i": lambda a: SCALAR + ROW,
    "T.max(s, j) - i": lambda a: np.maximum(SCALAR, COLUMN) - ROW,
    "T.cast(s + i, 'int32') + a[i, j]": lambda a: np.trunc(SCALAR + ROW) + a,
    "T.cast(i + 0.5 - j, 'int32') + a[i, j]": lambda a: np.trunc(ROW + 0.5 - COLUMN) + a,
    "a[i, j] * s": lambda a: a * SCALAR,
    "a[i, j] + T.cast(S[bx], 'int32')": lambda a: a + np.trunc(SCALAR),
    "T.sqrt(T.abs(s)) + j": lambda a: np.sqrt(np.abs(SCALAR)) + COLUMN,
    "T.if_then_else(a[i, j] < s, 1, 0)": lambda a: np.where(a < SCALAR, 1, 0),
    "T.if_then_else(a[i, j] > S[bx], s, i)": lambda a: np.where(a > SCALAR, SCALAR, ROW),
    "T.if_then_else(a[i, j] + i < s and j > s, 1, 0)": lambda a: np.where((a + ROW < SCALAR) & (COLUMN > SCALAR), 1, 0),
}


@pytest.mark.parametrize("expression", BESIDE_A_FLOAT)
def test_integers_beside_a_float_of_the_kernel_are_computed_as_floats(expression: str) -> None:
    """TVM makes them float32, and what is stored as an integer is cut off once, behind all."""
    body = f"""
a = T.alloc_shared((32, 64), "int32")
o = T.alloc_fragment((32, 64), "int32")
s = S[bx]
T.copy(A[bx * 32, 0], a)
for i, j in T.Parallel(32, 64):
    o[i, j] = {expression}
T.copy(o, O[bx * 32, 0])
"""
    params = 'A: T.Tensor((64, 64), "int32"), S: T.Tensor((2,), "float32"), O: T.Tensor((64, 64), "int32")'
    a = np.random.default_rng(1).integers(-9, 9, (64, 64)).astype(np.int32)
    given = {"A": a, "S": np.float32([-0.5, 1.75])}
    new = agree(gpu_file(params, body), given, atol=0, rtol=0)
    want = np.broadcast_to(np.trunc(BESIDE_A_FLOAT[expression](a)), (64, 64)).astype(np.int32)
    np.testing.assert_array_equal(run(new, given)["O"], want)
