"""Matrix products. All sum in fp32 (or int32) whatever the operands are."""

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
