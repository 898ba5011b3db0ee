"""TL171: copies along three and more axes go plane by plane, as many as the tensor has.

Between global memory and the chip the compiler moves the last two axes that are longer than 1, and of all others the
first element (``src/op/ascend.cc``: ``validRow`` is the extent of one axis). It ends a copy at the end of its tensor
along these two axes only, a GPU along every axis: planes behind the end are left out. What is not loaded is zero on a
GPU.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Protocol

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Dim, Memory, Operand
from tl2npu.kernel.symbolic import const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, factor, parse


class Axes(Protocol):
    """Which axes of a tensor a copy is split along, which of them may end, and whether its tile is cleared before."""

    @property
    def axes(self) -> frozenset[int]: ...
    @property
    def ending(self) -> frozenset[int]: ...
    @property
    def cleared(self) -> bool: ...


def guard(job: Job, found: Mapping[Copy, Axes]) -> None:
    """Write loops for these copies; fill the tiles of those that may leave a part of them as it is."""
    plan, names = Plan(job), Names(job)
    for copy, how in found.items():
        tile = copy.dst
        if not how.axes and tile.is_whole and tile.buffer.is_tile and not (copy.options or copy.via):
            plan.before(copy.node, parse(job, _fill(tile), copy.node))
            job.change("TL171", copy.node, f"filled `{tile.buffer.name}` with zeros, as far as it is behind the tensor")
        if not how.axes:
            continue
        text = _loops(copy, how, names)
        if text is not None:
            plan.replace(copy.node, parse(job, text, copy.node))
            sides = (copy.src, copy.dst)
            tensor = next(side for side in sides if side.buffer.memory is Memory.GM)
            end = ", up to the end of the tensor" if how.ending else ": the NPU's copy has two axes"
            job.change("TL171", copy.node, f"copied `{code(tensor.node)}` plane by plane{end}")
    plan.apply()


def _loops(copy: Copy, how: Axes, names: Names) -> str | None:
    axes = sorted(how.axes)
    loads = copy.src.buffer.memory is Memory.GM
    outer, inner = (copy.src, copy.dst) if loads else (copy.dst, copy.src)
    pairs = _pairs(outer, inner)
    whole = inner.is_whole
    cleared = loads and how.cleared
    if copy.options or copy.via or not pairs.keys() >= how.axes or (cleared and not whole):
        return None
    there: list[Dim | None] = list(outer.dims or [None] * len(outer.buffer.shape))
    here = {pairs[axis]: "" for axis in axes}
    starts = {axis: _start(there[axis]) for axis in axes}
    heads: list[tuple[str, str]] = []
    for axis, name in zip(axes, names.variables(*[("plane",)] * len(axes), inside=[copy.node]), strict=True):
        own = inner.dims[pairs[axis]] if inner.dims is not None else None
        extent = code(inner.buffer.shape_nodes[pairs[axis]]) if whole else str(own.extent if own is not None else "")
        place = name if starts[axis] == "0" else f"{starts[axis]} + {name}"
        starts[axis] = place
        here[pairs[axis]] = name if own is None or _start(own) == "0" else f"{_start(own)} + {name}"
        test = f"{place} < {code(outer.buffer.shape_nodes[axis])}" if axis in how.ending else ""
        heads.append((f"for {name} in T.serial({extent}):", test))
    parts = [starts.get(axis, ":" if dim is None else _written(dim)) for axis, dim in enumerate(there)]
    own_dims: list[Dim | None] = list(inner.dims or [None] * len(inner.buffer.shape))
    own_parts = [here.get(axis, ":" if dim is None else _written(dim)) for axis, dim in enumerate(own_dims)]
    sides = [f"{outer.buffer.name}[{', '.join(parts)}]", f"{inner.buffer.name}[{', '.join(own_parts)}]"]
    text = f"T.copy({', '.join(sides if loads else reversed(sides))})\n"
    if tests := [test for _, test in heads if test]:
        text = f"if {' and '.join(tests)}:\n{textwrap.indent(text, '    ')}"
    for head, _ in reversed(heads):
        text = f"{head}\n{textwrap.indent(text, '    ')}"
    return _fill(inner) + text if cleared else text


def _fill(tile: Operand) -> str:
    return f"T.tile.fill({tile.buffer.name}, {'0.0' if element_types.is_float(tile.buffer.dtype) else '0'})\n"


def _pairs(outer: Operand, inner: Operand) -> dict[int, int]:
    """The axis of the tile for each axis of the tensor along which more than one element is taken; empty if unclear."""
    one, dims = const(1), outer.dims or ()
    sizes = list(inner.buffer.shape) if inner.dims is None else [dim.extent or one for dim in inner.dims]
    if all(dim.is_point for dim in dims):  # also without any: the whole tensor
        skipped = len(outer.buffer.shape) - len(sizes)
        return {axis + skipped: axis for axis, size in enumerate(sizes) if size != one and axis + skipped >= 0}
    taken = [axis for axis, dim in enumerate(dims) if dim.extent is not None and dim.extent != one]
    filled = [axis for axis, size in enumerate(sizes) if size != one]
    return dict(zip(taken, filled, strict=True)) if len(taken) == len(filled) else {}


def _start(dim: Dim | None) -> str:
    if dim is None:
        return "0"
    node = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
    return "0" if node is None else code(node) if isinstance(node, cst.BinaryOperation) else factor(code(node))


def _written(dim: Dim) -> str:
    if isinstance(dim.node, cst.Slice):
        return code(cst.Subscript(cst.Name("x"), [cst.SubscriptElement(dim.node)]))[2:-1]
    return code(dim.node)
