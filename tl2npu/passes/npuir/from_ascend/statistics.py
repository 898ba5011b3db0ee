"""TL423: vectors that stand for the rows or columns of a tile get their unit axis: ``[M]`` becomes ``[M, 1]``."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Buffer, Copy, Memory, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.from_ascend.vectors import Axis, Vectors
from tl2npu.source.edits import Edits
from tl2npu.source.tree import argument, walk


def add_axes(job: Job) -> None:
    """Give every vector of :class:`Vectors` its axis, at its allocation, at every index and at copies."""
    kernel = job.kernel
    axes = Vectors(kernel).axes
    if not axes:
        return
    edits = Edits(job.file.index)
    for stmt in kernel.walk():
        if isinstance(stmt, Alloc) and stmt.buffer in axes:
            axis = axes[stmt.buffer]
            _allocation(edits, stmt.buffer, axis)
            job.change("TL423", stmt.buffer.node, f"gave `{stmt.buffer.name}` the shape {axis.value}")
        elif isinstance(stmt, Copy) and Memory.GM in (stmt.src.buffer.memory, stmt.dst.buffer.memory):
            _transfer(edits, stmt, axes)
    _indices(job, edits, axes)
    job.apply(edits)


def _allocation(edits: Edits, buffer: Buffer, axis: Axis) -> None:
    assert isinstance(buffer.node, cst.Call)
    shape = argument(buffer.node, "shape", 0)
    if shape is None:
        raise Blocked("TL429", buffer.node, f"the allocation of `{buffer.name}` does not contain its shape")
    (size,) = buffer.shape_nodes
    text = f"{code(size)}, 1" if axis is Axis.LAST else f"1, {code(size)}"
    edits.replace(shape, cst.parse_expression(f"({text})" if isinstance(shape, cst.Tuple) else f"[{text}]"))


def _transfer(edits: Edits, stmt: Copy, axes: dict[Buffer, Axis]) -> None:
    """A copy to or from global memory takes the vector as a vector: ``m[:, 0]``, and says how much it copies."""
    inner, outer = (stmt.dst, stmt.src) if stmt.src.buffer.memory is Memory.GM else (stmt.src, stmt.dst)
    if inner.buffer not in axes or stmt.via:
        return
    if inner.dims is None:
        flat = ":, 0" if axes[inner.buffer] is Axis.LAST else "0, :"
        edits.replace(inner.node, cst.parse_expression(f"{code(inner.node)}[{flat}]"))
    if outer.dims and outer.is_indexed:
        edits.replace(outer.node, cst.parse_expression(_sliced(outer, inner.buffer)))


def _sliced(outer: Operand, vector: Buffer) -> str:
    assert isinstance(outer.node, cst.Subscript)
    assert outer.dims is not None
    *first, last = (code(dim.node) for dim in outer.dims)
    (size,) = vector.shape_nodes
    start = f"({last})" if isinstance(outer.dims[-1].node, cst.IfExp) else last
    stop = f"{start} + {code(size)}" if last != "0" else code(size)
    return f"{code(outer.node.value)}[{', '.join([*first, f'{last} : {stop}'])}]"


def _indices(job: Job, edits: Edits, axes: dict[Buffer, Axis]) -> None:
    kernel = job.kernel
    names = {buffer.name: axis for buffer, axis in axes.items()}
    for node in walk(kernel.launched.node.body):
        if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name):
            continue
        axis = names.get(node.value.value)
        if axis is None:
            continue
        zero = cst.SubscriptElement(cst.Index(cst.Integer("0")))
        if any(isinstance(above, cst.Subscript) and _named(above) in names for above in job.file.index.ancestors(node)):
            text = f"an element of `{node.value.value}` indexes another vector, and both would need a second axis"
            raise Blocked("TL429", node, text)
        (element,) = node.slice
        new = [element, zero] if axis is Axis.LAST else [zero, element]
        edits.replace_many(element, new)


def _named(node: cst.Subscript) -> str:
    return node.value.value if isinstance(node.value, cst.Name) else ""
