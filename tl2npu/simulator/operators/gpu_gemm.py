"""Matrix products and constants of a GPU tile (tilelang/language/gemm_op.py, fill_op.py)."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.gemm import product
from tl2npu.simulator.operators.registry import semantics


def _checked(
    arithmetic: Any, A: Any, B: Any, C: Any, transpose_A: Any, transpose_B: Any, clear_accum: Any, name: str
) -> None:
    """``C (+)= op(A) @ op(B)``. Raises SimulatorError for extents that do not agree."""
    rows, inner = A.shape[-2:][::-1] if transpose_A else A.shape[-2:]
    inner_b, columns = B.shape[-2:][::-1] if transpose_B else B.shape[-2:]
    if inner != inner_b or C.shape[-2:] != (rows, columns):
        raise SimulatorError(
            f"T.{name} of A {list(A.shape)} and B {list(B.shape)} into C {list(C.shape)}, transpose_A={transpose_A}, "
            f"transpose_B={transpose_B}: the extents do not agree"
        )
    product(arithmetic, A, B, C, transpose_A, transpose_B, clear_accum)


@semantics("gemm", reads="A B C", writes="C", gpu=True)
def gemm(
    arithmetic: Any,
    A: Any,
    B: Any,
    C: Any,
    transpose_A: Any = False,
    transpose_B: Any = False,
    policy: Any = None,
    clear_accum: Any = False,
    k_pack: Any = 1,
    mbar: Any = None,
    annotations: Any = None,
) -> None:
    """GPU ``T.gemm``."""
    _checked(arithmetic, A, B, C, transpose_A, transpose_B, clear_accum, "gemm")


@semantics("wgmma_gemm", "gemm_v1", "gemm_v2", reads="A B C", writes="C", gpu=True)
def wgmma_gemm(
    arithmetic: Any,
    A: Any,
    B: Any,
    C: Any,
    transpose_A: Any = False,
    transpose_B: Any = False,
    policy: Any = None,
    clear_accum: Any = False,
    annotations: Any = None,
    **_: Any,
) -> None:
    """The same with a given instruction, and the names that older versions had."""
    _checked(arithmetic, A, B, C, transpose_A, transpose_B, clear_accum, "wgmma_gemm")


@semantics("fill", writes="buffer", gpu=True)
def fill(A: Any, buffer: Any, value: Any, annotations: Any = None) -> None:
    """``T.fill(buffer, value)``."""
    buffer[...] = value if hasattr(value, "dtype") else A.literal(value, buffer)


@semantics("clear", writes="buffer", gpu=True)
def clear(A: Any, buffer: Any, annotations: Any = None) -> None:
    """Zeros."""
    buffer[...] = A.literal(0, buffer)
