"""Operands of whole-tile operators, element by element: what an axis is called, where it starts, how long it is."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Operand
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.passes.writing.tiles import extent_text


@dataclass(frozen=True)
class Axis:
    """One axis of a region: ``lo`` is the text of its start, empty for zero; ``size`` its extent and the text of it."""

    lo: str
    extent: Sym
    size: str


def base(operand: Operand) -> str:
    """The buffer as the statement spells it."""
    node = operand.node
    return code(node.value) if isinstance(node, cst.Subscript) else code(node)


def axes(operand: Operand) -> tuple[Axis, ...] | None:
    """The axes of a region; None where an extent has no text."""
    buffer = operand.buffer
    if operand.dims is None:
        found = range(len(buffer.shape))
        return tuple(Axis("", buffer.shape[i], extent_text(buffer, i)) for i in found)
    result: list[Axis] = []
    for i, dim in enumerate(operand.dims):
        if not isinstance(dim.node, cst.Slice):
            result.append(Axis(_start(dim.node), const(1), "1"))
            continue
        if dim.extent is None or dim.node.step is not None:
            return None
        size = _size(operand, i, dim.extent)
        if size is None:
            return None
        result.append(Axis(_start(dim.node.lower), dim.extent, size))
    return tuple(result)


def _start(node: cst.BaseExpression | None) -> str:
    text = "" if node is None else code(node)
    return "" if text == "0" else text


def _size(operand: Operand, axis: int, extent: Sym) -> str | None:
    buffer = operand.buffer
    if axis < len(buffer.shape) and extent == buffer.shape[axis]:
        return extent_text(buffer, axis)
    assert operand.dims is not None
    dim = operand.dims[axis].node
    if isinstance(dim, cst.Slice) and dim.upper is not None and _start(dim.lower) == "":
        return code(dim.upper)
    try:
        return render(extent)
    except Unrenderable:
        return None


def element(operand: Operand, parts: tuple[Axis, ...], variables: tuple[str, ...]) -> str:
    """The element at the loop's variables; an empty variable stands for an axis that is not looped over."""
    indices = []
    for part, variable in zip(parts, variables, strict=True):
        if not variable:
            indices.append(part.lo or "0")
        else:
            indices.append(f"{part.lo} + {variable}" if part.lo else variable)
    return f"{base(operand)}[{', '.join(indices)}]"
