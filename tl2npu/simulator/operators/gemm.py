"""Matrix products, of GPU tiles too (tilelang/language/gemm_op.py): sums in fp32 (or int32), whatever is multiplied."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics


def product(
    A: Any, left: Any, right: Any, result: Any, left_transposed: bool, right_transposed: bool, clear: Any
) -> None:
    """``result (+)= op(left) @ op(right)`` on the last two axes; ``clear`` forgets what ``result`` was.

    Raises SimulatorError where the shapes do not agree.
    """
    left = left.swapaxes(-1, -2) if left_transposed else left
    right = right.swapaxes(-1, -2) if right_transposed else right
    left, right = _matrix(left), _matrix(right)
    target = _matrix(result)
    if min(left.ndim, right.ndim, target.ndim) < 2 or (*left.shape[-2:], *right.shape[-2:]) != (
        target.shape[-2],
        left.shape[-1],
        left.shape[-1],
        target.shape[-1],
    ):
        raise SimulatorError(
            f"a matrix product of {list(left.shape)} and {list(right.shape)} (as multiplied) into {list(target.shape)}"
        )
    value = A.matmul(left, right, A.name_of(result))
    if clear:
        target[...] = value
    else:
        A.accumulate(target, value)


def _matrix(x: Any) -> Any:
    """Leading axes of extent 1 dropped."""
    while x.ndim > 2 and x.shape[0] == 1:
        x = x[0]
    return x


def _accumulator(A: Any, name: str, result: Any) -> None:
    """Raises SimulatorError for an L0C buffer of a type that the matrix unit does not sum in."""
    if A.name_of(result) not in ("float32", "int32"):
        raise SimulatorError(f"T.{name} sums in float32 or int32, not in {A.name_of(result)}")


@semantics("gemm_v0", reads="A B C", writes="C")
def gemm_v0(
    arithmetic: Any,
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    init: Any = False,
    kL0Size: int = 128,
) -> None:
    """Ascend's ``gemm_v0``: ``init`` may be known only when the kernel runs; ``kL0Size`` changes no result."""
    _accumulator(arithmetic, "gemm_v0", C)
    product(arithmetic, A, B, C, transpose_A, transpose_B, init)


@semantics("mma", reads="A B C", writes="C")
def mma(arithmetic: Any, A: Any, B: Any, C: Any, init: Any = False, **_: Any) -> None:
    """``T.mma`` on L0A, L0B, L0C."""
    _accumulator(arithmetic, "mma", C)
    product(arithmetic, A, B, C, False, False, init)


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
