"""Matrix products. All sum in fp32 (or int32) whatever the operands are."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.operators.registry import semantics


def product(
    A: Any, left: Any, right: Any, result: Any, left_transposed: bool, right_transposed: bool, clear: Any
) -> None:
    """``result (+)= op(left) @ op(right)`` on the last two axes; ``clear`` forgets what ``result`` was."""
    left = left.swapaxes(-1, -2) if left_transposed else left
    right = right.swapaxes(-1, -2) if right_transposed else right
    left, right = _matrix(left), _matrix(right)
    value = A.matmul(left, right, A.name_of(result))
    target = _matrix(result)
    if clear:
        target[...] = value
    else:
        A.accumulate(target, value)


def _matrix(x: Any) -> Any:
    """Leading axes of extent 1 dropped."""
    while x.ndim > 2 and x.shape[0] == 1:
        x = x[0]
    return x


@semantics("gemm_v0", reads="A B C", writes="C")
def gemm_v0(
    arithmetic: Any, A: Any, B: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False, init: Any = False
) -> None:
    """Ascend's ``gemm_v0``: ``init`` may be known only when the kernel runs."""
    product(arithmetic, A, B, C, transpose_A, transpose_B, init)


@semantics("mma", reads="A B C", writes="C")
def mma(arithmetic: Any, A: Any, B: Any, C: Any, init: Any = False, **_: Any) -> None:
    """``T.mma`` on L0A, L0B, L0C."""
    product(arithmetic, A, B, C, False, False, init)
