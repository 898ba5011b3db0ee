"""Matrix products and constants of a GPU tile (tilelang/language/gemm_op.py, fill_op.py)."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.gemm import product
from tl2npu.simulator.operators.registry import semantics


@semantics("gemm", "wgmma_gemm", "gemm_v1", "gemm_v2", reads="A B C", writes="C", gpu=True)
def gemm(
    arithmetic: Any,
    A: Any,
    B: Any,
    C: Any,
    transpose_A: Any = False,
    transpose_B: Any = False,
    clear_accum: Any = False,
) -> None:
    """``C (+)= op(A) @ op(B)``. Raises SimulatorError for extents that do not agree."""
    rows, inner = A.shape[-2:][::-1] if transpose_A else A.shape[-2:]
    inner_b, columns = B.shape[-2:][::-1] if transpose_B else B.shape[-2:]
    if inner != inner_b or C.shape[-2:] != (rows, columns):
        raise SimulatorError(
            f"T.gemm of A {list(A.shape)} and B {list(B.shape)} into C {list(C.shape)}, transpose_A={transpose_A}, "
            f"transpose_B={transpose_B}: the extents do not agree"
        )
    product(arithmetic, A, B, C, transpose_A, transpose_B, clear_accum)


@semantics("fill", writes="buffer", gpu=True)
def fill(A: Any, buffer: Any, value: Any) -> None:
    """``T.fill(buffer, value)``."""
    buffer[...] = value if hasattr(value, "dtype") else A.literal(value, buffer)


@semantics("clear", writes="buffer", gpu=True)
def clear(A: Any, buffer: Any) -> None:
    """Zeros."""
    buffer[...] = A.literal(0, buffer)
