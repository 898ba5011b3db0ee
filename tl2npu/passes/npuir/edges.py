"""TL438: copies end where their tensor ends.

``T.copy(A[x, y], a)`` becomes ``rows = T.min(M, size - x)`` and ``T.copy(A[x : x + rows, ...], a[0:rows, ...])``. What
the copy leaves of a tile is cleared first: Ascend C and GPUs fill it with zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Dim, Memory, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.passes.writing.tiles import dtype_text, shape_text

_WISHES = ("cols", "rows", "planes")


@dataclass(frozen=True, eq=False)
class Cut:
    """A copy that must end with its tensor along some axes; along those of ``outside`` it may begin behind it."""

    copy: Copy
    axes: tuple[int, ...]
    outside: frozenset[int]


def end_with_tensors(job: Job, cuts: Iterable[Cut]) -> None:
    """Rewrite the copies; raises :class:`Blocked` for one whose sides cannot be told apart axis by axis."""
    plan, names = Plan(job), Names(job)
    known: dict[tuple[int, str], str] = {}
    for cut in cuts:
        stmt = cut.copy
        loads = stmt.src.buffer.memory is Memory.GM
        outer, inner = (stmt.src, stmt.dst) if loads else (stmt.dst, stmt.src)
        lines: list[str] = []
        counts: dict[int, str] = {}
        for axis, lent, _ in _pairs(outer, inner):
            if axis in cut.axes:
                counts[axis] = _count(job, names, known, lines, stmt, outer, axis, lent, axis in cut.outside)
        inside = _inside(outer, inner, counts)
        tile = inner.buffer.name
        if loads and element_type(job, outer.buffer) != element_type(job, inner.buffer):
            tile = _beside(job, plan, names, outer, inner)
            inside = f"{tile}[{inside.partition('[')[2]}"
        if loads:
            lines.append(f"T.clear({tile})")
        sides = [_outside(outer, inner, counts), inside]
        lines.append(f"T.copy({', '.join(sides if loads else reversed(sides))})")
        if tile != inner.buffer.name:
            lines.append(f"T.copy({tile}, {inner.buffer.name})")
        plan.replace(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
        job.change("TL438", stmt.node, f"ended the copy at the end of `{outer.buffer.name}`")
    plan.apply()


def _beside(job: Job, plan: Plan, names: Names, outer: Operand, inner: Operand) -> str:
    """A tile of the tensor's type: a copy that converts into a part of a tile loses the rest (TL454)."""
    place = inner.buffer.statement
    if place is None or inner.dims is not None:
        text = f"this converting copy into a part of `{inner.buffer.name}` would lose the rest of it"
        raise Blocked("TL454", outer.node, text)
    name = names.fresh(f"{inner.buffer.name}_part")
    made = f"{name} = T.alloc_shared({shape_text(inner.buffer)}, {dtype_text(outer.buffer)})\n"
    plan.after(place, parse(job, made, place))
    return name


def _pairs(outer: Operand, inner: Operand) -> list[tuple[int, str, int]]:
    """Axis of the tensor, extent as text, axis of the tile."""
    dims = outer.dims or ()
    shape, nodes = inner.buffer.shape, inner.buffer.shape_nodes
    whole = inner.dims is None or all(dim.is_point or dim.lo.is_zero for dim in inner.dims)
    if not whole:
        raise Blocked(
            "TL439", outer.node, f"`{code(inner.node)}` is a part of a tile; the copy into it may not fill it"
        )
    taken = [n for n, size in enumerate(shape) if size.constant != 1 and not (inner.dims and inner.dims[n].is_point)]
    if all(dim.is_point for dim in dims):
        return [(len(dims) - len(shape) + n, code(nodes[n]), n) for n in taken if len(dims) - len(shape) + n >= 0]
    axes = [n for n, dim in enumerate(dims) if dim.extent is not None and dim.extent.constant != 1]
    if len(axes) != len(taken):
        raise Blocked("TL439", outer.node, f"the axes of `{code(outer.node)}` and `{code(inner.node)}` do not match")
    return [(axis, code(nodes[n]), n) for axis, n in zip(axes, taken, strict=True)]


def _count(
    job: Job,
    names: Names,
    known: dict[tuple[int, str], str],
    lines: list[str],
    stmt: Copy,
    outer: Operand,
    axis: int,
    lent: str,
    outside: bool,
) -> str:
    """The name of the number of elements that lie inside; bound above the copy unless it is already."""
    assert outer.dims is not None
    low = _low(outer.dims[axis])
    size = code(outer.buffer.shape_nodes[axis])
    left = size if low == "0" else f"{size} - {_behind_minus(low)}"
    value = f"T.min({lent}, {left})"
    if outside:
        value = f"T.max({value}, 0)"
    blocks = [above for above in job.file.index.ancestors(stmt.node) if isinstance(above, cst.IndentedBlock)]
    for block in blocks:
        if (id(block), value) in known:
            return known[id(block), value]
    place = len(outer.dims) - 1 - axis
    name = names.fresh(_WISHES[min(place, 2)], f"{outer.buffer.name.lower()}_{_WISHES[min(place, 2)]}")
    lines.append(f"{name} = {value}")
    known[id(blocks[0]), value] = name
    return name


def _behind_minus(text: str) -> str:
    node = cst.parse_expression(text)
    sum_ = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract))
    return f"({text})" if (sum_ or isinstance(node, cst.IfExp)) and not node.lpar else text


def _low(dim: Dim) -> str:
    if isinstance(dim.node, cst.Slice):
        return code(dim.node.lower) if dim.node.lower is not None else "0"
    return code(dim.node)


def _outside(outer: Operand, inner: Operand, counts: Mapping[int, str]) -> str:
    assert outer.dims is not None
    lengths = {axis: counts.get(axis, text) for axis, text, _ in _pairs(outer, inner)}
    starts_only = all(dim.is_point for dim in outer.dims)
    parts = []
    for axis, dim in enumerate(outer.dims):
        if axis in counts or (starts_only and axis in lengths):
            low = _low(dim)
            parts.append(f"0:{lengths[axis]}" if low == "0" else f"{low} : {low} + {factor(lengths[axis])}")
        else:
            parts.append(_written(dim.node))
    return f"{outer.buffer.name}[{', '.join(parts)}]"


def _written(node: cst.BaseExpression | cst.Slice) -> str:
    if not isinstance(node, cst.Slice):
        return code(node)
    element = cst.Subscript(cst.Name("x"), [cst.SubscriptElement(node)])
    return code(element)[2:-1]


def _inside(outer: Operand, inner: Operand, counts: Mapping[int, str]) -> str:
    """The part of the tile that is filled."""
    limits = {n: counts.get(axis, text) for axis, text, n in _pairs(outer, inner)}
    parts = []
    for n, node in enumerate(inner.buffer.shape_nodes):
        if inner.dims is not None and inner.dims[n].is_point:
            parts.append(code(inner.dims[n].node))
        else:
            parts.append(f"0:{limits.get(n, code(node))}")
    return f"{inner.buffer.name}[{', '.join(parts)}]"
