"""Element types of scalar expressions, as the parser of a prim_func works them out.

Sources: ``BinaryOpMatchTypes`` (TVM, src/tir/op/op.cc) for arithmetic; ``_auto_broadcast``
(tilelang/language/parser/operation.py) for comparisons, whose operands are *not* brought to one type. Each line of the
tables was tried with a kernel at 95acbd7f.
"""

from __future__ import annotations

import math
from typing import Literal

from tl2npu.kernel.element_types import plain

_FLOATS = ("float16", "float32", "float64")
_LARGEST = {"float16": 65504.0, "bfloat16": 3.895313892515355e38, "float32": 3.4028234663852886e38}
"""TVM, src/support/scalars.h and src/ir/expr.cc: "Literal value exceeds maximum" for a number beyond, but infinity."""
_SIZES = ("8", "16", "32", "64")


Type = Literal["int", "float", "bool", ""]


def family(dtype: str) -> Type:
    """``int``, ``float`` or ``bool``; empty for a type that is not known. ``int*`` and ``float*`` are of any width."""
    if dtype.startswith(("int", "uint")):
        return "int"
    if dtype == "bool":
        return "bool"
    return "float" if dtype.startswith(("float", "bfloat", "half")) else ""


def exact(dtype: str) -> str:
    """One name for each element type whose width is known, else empty."""
    found = plain(dtype)
    is_integer = found.removeprefix("u").removeprefix("int") in _SIZES
    return found if found in (*_FLOATS, "bfloat16", "bool") or is_integer or found.startswith("float8") else ""


def of_sum(left: str, right: str) -> str:
    """The type of arithmetic between two expressions; its family where one of them is not exact.

    A number of Python is an int32 or a float32 here, so that ``h[0] * 2.0`` of a float16 is a float32.
    """
    if left == right:
        return left
    families = {family(left), family(right)}
    if "" in families:
        return "float*" if "float" in families else ""
    for wins in ("float", "int"):
        if families & {wins} and len(families) == 2:
            return left if family(left) == wins else right
    if not exact(left) or not exact(right):
        return f"{family(left)}*"
    if left in _FLOATS and right in _FLOATS:
        return max(left, right, key=_FLOATS.index)
    if families == {"float"}:  # a bfloat16 beside float32 is converted, beside an 8-bit float too
        return next((dtype for dtype in (left, right) if dtype in _FLOATS), "bfloat16")
    width = max(_bits(left), _bits(right))
    return f"uint{width}" if left[0] == right[0] == "u" else f"int{width}"


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


def holds(dtype: str, number: float) -> bool:
    """Whether a number is a constant of an element type; a float is cut to an integer, as ``T.cast`` does it."""
    dtype = exact(dtype)
    if number != number or not dtype or dtype == "bool":
        return True
    if family(dtype) == "float":
        return math.isinf(number) or abs(number) <= _LARGEST.get(dtype, math.inf)
    count = 2 ** _bits(dtype)
    low = 0 if dtype.startswith("u") else -count // 2
    return not math.isinf(number) and low <= int(number) < low + count


def mismatch(left: str, right: str) -> bool:
    """True for two expressions that the parser does not compare: "mismatched types"."""
    if exact(left) and exact(right):
        return left != right
    return bool(family(left)) and bool(family(right)) and family(left) != family(right)


def takes_number(expression: str, number: str, number_is_left: bool) -> bool:
    """Whether an expression is compared with an ``int``, ``float`` or ``bool`` of Python.

    An integer becomes a constant of the expression's type, if that is an integer or a float; for ``bfloat16`` it stays
    a Python number, and the parser dies. A float on the left becomes one of the expression's type or a float32; on the
    right it becomes one of the expression's type: "FloatImm supports only float data type".
    """
    if not family(expression):
        return True
    if number in ("int", "bool"):
        return not expression.startswith(("bfloat", "float8"))
    if expression.startswith(("bfloat", "float8")):
        return not number_is_left
    return family(expression) == "float"
