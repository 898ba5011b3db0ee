"""Checks see through a parameter of the factory to the element types that the file gives it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checks.support import ONE, errors
from tests.passes.gpu.support import agree, gpu_file, refused, result_of

PARAMS = "A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype)"
BODY = """
a = T.alloc_shared((32, 64), dtype)
T.fill(a, {})
if bx > 0:
    T.copy(A[bx * 32, 0], a)
T.copy(a, B[bx * 32, 0])
"""


@pytest.mark.parametrize(("given", "code"), [("int8", "TL710"), ("uint8", "TL710"), ("bool", "TL736")])
def test_no_instruction_for_the_only_type(given: str, code: str) -> None:
    for dtype in (f"'{given}'", f"T.{given}"):
        assert code in [found for found, _ in refused(gpu_file(PARAMS, BODY.format(1), args=f"dtype={dtype}"))]


def test_another_call_may_be_right() -> None:
    text = gpu_file(PARAMS, BODY.format(1), args="dtype='int8'") + "\n\nfactory(dtype='int32')\n"
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["migrated"]


def test_arithmetic_is_not_for_every_type_that_a_call_may_give() -> None:
    """No vector core adds bfloat16: said once where a caller of another file may give it; else computed in float32."""
    body = BODY.format(1) + "for i, j in T.Parallel(32, 64):\n    a[i, j] = a[i, j] + a[i, j] * 2\n"
    body += "T.copy(a, B[bx * 32, 0])\n"
    for args, call, expected in (
        ("dtype", "", ["warning"]),
        ("dtype='float16'", "factory('bfloat16')", []),
        ("dtype='float16'", "", []),
    ):
        result = result_of(gpu_file(PARAMS, body, args=args) + f"\n\n{call}\n")
        assert [d.severity for d in result.diagnostics if d.code == "TL710"] == expected, args


def test_a_tile_that_is_filled_with_true_may_be_of_bool() -> None:
    assert refused(gpu_file(PARAMS, BODY.format(True), args="dtype")) == [("TL710", 11)]
    assert [k.disposition for k in result_of(gpu_file(PARAMS, BODY.format(1), args="dtype")).kernels] == ["migrated"]


def test_a_product_is_float32_whatever_its_name() -> None:
    """`acc = u - acc`, of a product and a tile of float32, is one vector instruction, and its first reader (TL845)."""
    text = gpu_file(
        "A: T.Tensor((64, 64), dtype), U: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype)",
        """
        a = T.alloc_shared((32, 64), dtype)
        b = T.alloc_shared((64, 64), dtype)
        u = T.alloc_shared((32, 64), dtype)
        acc = T.alloc_fragment((32, 64), accum)
        T.copy(A[bx * 32, 0], a)
        T.copy(A, b)
        T.gemm(a, b, acc, clear_accum=True)
        T.copy(U[bx * 32, 0], u)
        for i, j in T.Parallel(32, 64):
            acc[i, j] = u[i, j] - acc[i, j]
        T.copy(acc, B[bx * 32, 0])
        """,
        args='dtype="bfloat16", accum="float32"',
    )
    assert [kernel.disposition for kernel in result_of(text).kernels] == ["migrated"]


@pytest.mark.parametrize("given", ["'float'", "T.float"])
def test_a_type_has_one_name(given: str) -> None:
    """A product of `"float"` and a tile that is computed in float32: no tile and no copy between the two."""
    text = gpu_file(
        "A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype)",
        """
        a = T.alloc_shared((32, 64), dtype)
        b = T.alloc_shared((64, 64), dtype)
        acc = T.alloc_fragment((32, 64), accum)
        T.copy(A[bx * 32, 0], a)
        T.copy(A, b)
        T.gemm(a, b, acc, clear_accum=True)
        for i, j in T.Parallel(32, 64):
            x = acc[i, j] + 1.0
            acc[i, j] = x / (1.0 + T.exp(-x))
        T.copy(acc, B[bx * 32, 0])
        """,
        args="dtype='float16', accum=GIVEN",
    )
    found, expected = (str(result_of(text.replace("GIVEN", name)).new_text) for name in (given, "'float32'"))
    assert "T.gemm_v0" in expected
    assert found.partition("@T.prim_func")[2] == expected.partition("@T.prim_func")[2]


MASKED = """
x = T.alloc_shared((32, 64), "float32")
k = T.alloc_shared((32, 64), dtype)
T.copy(X[bx * 32, 0], x)
T.copy(K[bx * 32, 0], k)
for i, j in T.Parallel(32, 64):
    x[i, j] = {}
T.copy(x, Y[bx * 32, 0])
"""
MASK = 'X: T.Tensor((64, 64), "float32"), K: T.Tensor((64, 64), dtype), Y: T.Tensor((64, 64), "float32")'
VALUES = [
    "T.if_then_else(k[i, j] != 0, x[i, j], -1e30)",
    "x[i, j] * k[i, j]",
    "x[i, j] * T.cast(k[i, j], 'float32')",
    "T.cast(k[i, j], 'float16')",
    "k[i, j]",
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_mask_whose_type_is_a_parameter(dtype: str, value: str) -> None:
    """Conversions of integers go by the type that the file gives the name; ``T.copy`` converts no uint8."""
    rng = np.random.default_rng(7)
    inputs = {
        "X": rng.standard_normal((64, 64)).astype(np.float32),
        "K": rng.integers(0, 3, (64, 64)).astype(dtype),
        "Y": np.zeros((64, 64), np.float32),
    }
    agree(gpu_file(MASK, MASKED.format(value), args=f"dtype='{dtype}'"), inputs)


def conversions(body: str, dtype: str) -> list[str]:
    return [code for code in errors(body, args=f"dtype={dtype}", launch=ONE) if code == "TL711"]


def test_conversions_of_names() -> None:
    """A conversion that exists for none of the types is an error, one that exists for some of them is not."""
    body = "a = T.alloc_ub((16, 64), dtype)\nb = T.alloc_ub((16, 64), 'float32')\nT.copy(a, b)"
    for given, found in (("'uint8'", ["TL711"]), ("T.int8", ["TL711"]), ("'float16'", []), ("None", [])):
        assert conversions(body, given) == found
    cast = "a = T.alloc_ub((16, 64), dtype)\nb = T.alloc_ub((16, 64), 'float16')\n"
    cast += 'T.tile.cast(b, a, "CAST_NONE", 1024)'
    for given, found in (("'uint8'", []), ("'int64'", ["TL711"]), ("'float16'", ["TL711"])):
        assert conversions(cast, given) == found
