"""Checks see through a parameter of the factory to the element types that the file gives it."""

from __future__ import annotations

import pytest

from tests.passes.gpu.support import gpu_file, refused, result_of

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
