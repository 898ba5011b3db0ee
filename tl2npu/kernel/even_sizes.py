"""``threads=1 if M % 2 else 2``: one vector core where the last row would be lost, else both."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code


def sizes_to_be_even(threads: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """The sizes of such a number of threads, joined by ``or``; none for any other expression."""
    if not isinstance(threads, cst.IfExp) or (code(threads.body), code(threads.orelse)) != ("1", "2"):
        return []
    return _odd(threads.test) or []


def _odd(test: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        left, right = _odd(test.left), _odd(test.right)
        return None if left is None or right is None else left + right
    if isinstance(test, cst.BinaryOperation) and isinstance(test.operator, cst.Modulo) and code(test.right) == "2":
        return [test.left]
    return None
