"""Values that are whole numbers for certain: casts to integers keep them, and powers of two of them are exact."""

from __future__ import annotations

from tl2npu.passes.gpu.elementwise import element_types, functions
from tl2npu.passes.gpu.elementwise.tree import Expr


def is_whole(value: Expr) -> bool:
    """True if every element of a value is a whole number, an infinity or NaN."""
    if value.kind == "number":
        return value.name == "integer" or (value.value is not None and value.value.is_integer())
    if value.kind in ("load", "cast") and element_types.is_integer(value.dtype):
        return True
    if value.kind == "index":
        return True
    if value.kind == "cast":
        return value.dtype in ("float32", "float64") and is_whole(value.args[0])
    if value.kind == "call":
        if value.name in functions.ROUNDING:
            return True
        return value.name in ("max", "min", "clamp", "abs") and all(map(is_whole, value.args))
    if value.kind == "select":
        return all(map(is_whole, value.args[1:]))
    if value.kind == "negative" or (value.kind == "binary" and value.name in ("+", "-", "*")):
        return value.dtype in ("", "float32") and all(map(is_whole, value.args))
    return False
