"""Parts of buffers as arguments: in which form the parser of a prim_func gives them to an operator."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.ascend.arguments import KEEPS_SLICES, Form
from tl2npu.kernel.model import Operand
from tl2npu.kernel.symbolic import const


def form_of(call: cst.Call, operand: Operand) -> Form:
    """The form in which a call gets an operand; one that stands behind a macro's parameter is a window."""
    if operand.dims is None:
        return "whole"
    if operand.is_indexed:
        return "element"
    slices = [dim.node for dim in operand.dims if isinstance(dim.node, cst.Slice)]
    if any(part.step is not None for part in slices):
        return "lanes"
    by_place = any(arg.value is operand.node and arg.keyword is None for arg in call.args)
    named = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if not by_place or not named or named in KEEPS_SLICES:
        return "window"
    return "lanes" if has_two_bounds(operand.node) else "window"


def has_two_bounds(node: cst.CSTNode) -> bool:
    """True for a subscript with a slice that has both bounds."""
    items = node.slice if isinstance(node, cst.Subscript) else ()
    slices = [item.slice for item in items if isinstance(item.slice, cst.Slice)]
    return any(part.lower is not None and part.upper is not None for part in slices)


def reads_another(operand: Operand) -> bool:
    """True for an element whose first index alone is another element of the flat buffer, or may be."""
    if operand.dims is None or not operand.is_indexed or len(operand.dims) < 2:
        return False
    place, stride = const(0), const(1)
    for dim, size in reversed(list(zip(operand.dims, operand.buffer.shape, strict=False))):
        place += dim.lo * stride
        stride = stride * size
    return place != operand.dims[0].lo
