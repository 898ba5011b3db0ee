"""TL614: tensors of an eager kernel that may have any strides, ``A: T.StridedTensor[[M, N], [dM, dN], T.float32]``.

Copies of an NPU take a tensor to be contiguous. The values of one that is only read do not depend on its strides, so
that callers pass ``a.contiguous()``, which copies nothing where it is contiguous already.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.tree import names_in

STRIDED = "StridedTensor"


def as_plain(annotation: cst.BaseExpression, tensor: cst.BaseExpression) -> cst.BaseExpression | None:
    """The annotation of a contiguous tensor; None for one that is not written as shape, strides and type."""
    if isinstance(annotation, cst.Call) and len(annotation.args) >= 2:
        if any(arg.keyword is not None or arg.star for arg in annotation.args[:2]):
            return None
        return annotation.with_changes(func=tensor, args=[annotation.args[0], *annotation.args[2:]])
    if isinstance(annotation, cst.Subscript) and len(annotation.slice) >= 2:
        return annotation.with_changes(value=tensor, slice=[annotation.slice[0], *annotation.slice[2:]])
    return None


def strides_of(annotation: cst.BaseExpression) -> cst.CSTNode:
    """The second of shape, strides and type."""
    part = annotation.args[1] if isinstance(annotation, cst.Call) else None
    return part if part is not None else cst.ensure_type(annotation, cst.Subscript).slice[1]


def is_only_read(
    index: Index, body: cst.CSTNode, name: str, operator: Callable[[cst.BaseExpression], str | None]
) -> bool:
    """Whether a tensor is nothing but the source of copies, and read element by element in assignments.

    ``operator`` names the operators of TileLang.
    """
    return all(_reads(index, use, operator) for use in names_in(body) if use.value == name)


def _reads(index: Index, use: cst.Name, operator: Callable[[cst.BaseExpression], str | None]) -> bool:
    node: cst.CSTNode = use
    above = index.parent(node)
    if isinstance(above, cst.Attribute) and above.value is use:
        return above.attr.value in ("dtype", "shape")
    if isinstance(above, cst.AnnAssign):
        return above.target is use and above.value is None  # its declaration
    if isinstance(above, cst.Subscript) and above.value is use:
        node, above = above, index.parent(above)
    while isinstance(above, (cst.BinaryOperation, cst.UnaryOperation)):
        node, above = above, index.parent(above)
    if isinstance(above, cst.Arg):
        call = index.parent(above)
        first = isinstance(call, cst.Call) and call.args[0] is above and above.keyword is None
        return first and isinstance(call, cst.Call) and operator(call.func) == "copy"
    return isinstance(above, (cst.Assign, cst.AugAssign)) and above.value is node


def contiguous(tensor: cst.BaseExpression) -> cst.BaseExpression:
    """``a.contiguous()``."""
    func = tensor.func if isinstance(tensor, cst.Call) else None
    if isinstance(func, cst.Attribute) and func.attr.value == "contiguous":
        return tensor
    plain = isinstance(tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or bool(tensor.lpar)
    base = tensor if plain else tensor.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Call(cst.Attribute(base, cst.Name("contiguous")))
