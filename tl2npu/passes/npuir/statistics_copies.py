"""Copies of vectors that get another axis.

A copy drops axes of extent 1 on both sides. A whole tile borrows the extents of slices on the other side if these have
as many axes, and start indices borrow those of the tile, from the last axis on: both mean something else once the tile
has another axis, so that slices are written there.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Dim, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import factor
from tl2npu.passes.writing.tiles import extent_text
from tl2npu.source.edits import Edits


def copy_edits(job: Job, edits: Edits, stmt: Copy, axes: Mapping[Buffer, int]) -> None:
    """Edit the sides of a copy of which one, whole, gets an axis and the other does not."""
    pair = stmt.src, stmt.dst
    for one, other in (pair, pair[::-1]):
        if one.buffer not in axes or other.buffer in axes:
            continue
        if not one.is_whole:
            if other.dims is not None and not any(isinstance(dim.node, cst.Slice) for dim in other.dims):
                text = f"`{code(one.node)}` needs the reduced axis, but `{code(other.node)}` has no slices"
                raise Blocked("TL408", stmt.node, text)
            continue
        if other.dims is None:
            continue
        _one_side(job, edits, stmt, one, other, axes[one.buffer])


def _one_side(job: Job, edits: Edits, stmt: Copy, one: Operand, other: Operand, axis: int) -> None:
    assert other.dims is not None
    rank = len(one.buffer.shape)
    dims = list(other.dims)
    points = [dim.is_point for dim in dims]
    if all(points):
        if axis == 0 and rank == 1:
            return  # a row: the extents are borrowed from the last axis on, and (1, N) has the same last axis
        if len(dims) < rank:
            raise Blocked("TL408", stmt.node, f"`{code(other.node)}` has fewer axes than `{one.buffer.name}`")
        edits.replace(other.node, sliced(other, one.buffer))
        points = [*points[: len(dims) - rank], *(False for _ in range(rank))]
        job.change("TL407", stmt.node, f"wrote slices for `{code(other.node)}`")
    if len(dims) != rank + 1:
        return  # the tile is taken whole, and axes of extent 1 do not count
    expected = [False] * rank
    expected.insert(axis, True)
    if points == expected:
        return
    if one.dims is None:
        inner = [":"] * rank
        inner.insert(axis, "0")
        edits.replace(one.node, cst.parse_expression(f"{code(one.node)}[{', '.join(inner)}]"))


def sliced(other: Operand, tile: Buffer) -> cst.BaseExpression:
    """``X[b, s, h0]`` as ``X[b, s, h0 : h0 + H]``."""
    assert other.dims is not None
    assert isinstance(other.node, cst.Subscript)
    rank = len(tile.shape)
    fixed, moving = other.dims[:-rank], other.dims[-rank:]
    parts = [code(dim.node) for dim in fixed]
    parts += [_slice(dim, extent_text(tile, number)) for number, dim in enumerate(moving)]
    return cst.parse_expression(f"{code(other.node.value)}[{', '.join(parts)}]")


def _slice(dim: Dim, extent: str) -> str:
    start = code(dim.node)
    if dim.lo.is_zero:
        return f"0:{factor(extent)}"
    product = dim.node
    if isinstance(product, cst.BinaryOperation) and isinstance(product.operator, cst.Multiply):
        left, right = code(product.left), code(product.right)
        if right == extent:
            return f"{start} : ({left} + 1) * {right}"
        if left == extent:
            return f"{start} : {left} * ({right} + 1)"
    return f"{start} : {start} + {extent}"
