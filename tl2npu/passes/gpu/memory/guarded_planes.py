"""TL171: planes of a tile of three and more axes are copied one by one, as many as its tensor has.

A GPU ends a copy at the end of its tensor along every axis, the NPU's compiler along the last two only
(``src/op/ascend.cc``, ``compute_valid_extent``): planes behind the end would be loaded, and stored, too. What is not
loaded is zero on a GPU.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

import libcst as cst

from tl2npu.kernel import element_types
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Dim, Memory, Operand
from tl2npu.kernel.symbolic import const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, factor, parse


def guard(job: Job, found: Mapping[Copy, Iterable[int]]) -> None:
    """Write loops for these copies, over the axes of the tensor that may end within a tile; fill what they load to.

    A load that ends along its last two axes fills the first plane of its tile only (``copy_gm_to_ub``).
    """
    plan, names = Plan(job), Names(job)
    for copy, axes in found.items():
        tile = copy.dst
        if not axes and tile.is_whole and tile.buffer.is_tile and not (copy.options or copy.via):
            plan.before(copy.node, parse(job, _fill(tile), copy.node))
            job.change("TL171", copy.node, f"filled `{tile.buffer.name}` with zeros, as far as it is behind the tensor")
        if not axes:
            continue
        text = _loops(copy, sorted(axes), names)
        if text is not None:
            plan.replace(copy.node, parse(job, text, copy.node))
            sides = (copy.src, copy.dst)
            tensor = next(side for side in sides if side.buffer.memory is Memory.GM)
            job.change("TL171", copy.node, f"copied `{code(tensor.node)}` plane by plane, up to the end of the tensor")
    plan.apply()


def _loops(copy: Copy, axes: list[int], names: Names) -> str | None:
    loads = copy.src.buffer.memory is Memory.GM
    outer, inner = (copy.src, copy.dst) if loads else (copy.dst, copy.src)
    pairs = _pairs(outer, inner)
    whole = inner.is_whole
    if copy.options or copy.via or not pairs.keys() >= set(axes) or (loads and not whole):
        return None
    there, here = list(outer.dims or ()), {pairs[axis]: "" for axis in axes}
    starts = {axis: _start(there[axis]) for axis in axes}
    heads: list[tuple[str, str]] = []
    for axis, name in zip(axes, names.variables(*[("plane",)] * len(axes), inside=[copy.node]), strict=True):
        own = inner.dims[pairs[axis]] if inner.dims is not None else None
        extent = code(inner.buffer.shape_nodes[pairs[axis]]) if whole else str(own.extent if own is not None else "")
        place = name if starts[axis] == "0" else f"{starts[axis]} + {name}"
        starts[axis] = place
        here[pairs[axis]] = name if own is None or _start(own) == "0" else f"{_start(own)} + {name}"
        heads.append((f"for {name} in T.serial({extent}):", f"{place} < {code(outer.buffer.shape_nodes[axis])}"))
    parts = [starts.get(axis, _written(dim)) for axis, dim in enumerate(there)]
    own_dims = list(inner.dims) if inner.dims is not None else [None] * len(inner.buffer.shape)
    own_parts = [here.get(axis, ":" if dim is None else _written(dim)) for axis, dim in enumerate(own_dims)]
    sides = [f"{outer.buffer.name}[{', '.join(parts)}]", f"{inner.buffer.name}[{', '.join(own_parts)}]"]
    text = f"T.copy({', '.join(sides if loads else reversed(sides))})\n"
    text = f"if {' and '.join(test for _, test in heads)}:\n{textwrap.indent(text, '    ')}"
    for head, _ in reversed(heads):
        text = f"{head}\n{textwrap.indent(text, '    ')}"
    return _fill(inner) + text if loads else text


def _fill(tile: Operand) -> str:
    return f"T.tile.fill({tile.buffer.name}, {'0.0' if element_types.is_float(tile.buffer.dtype) else '0'})\n"


def _pairs(outer: Operand, inner: Operand) -> dict[int, int]:
    """The axis of the tile for each axis of the tensor along which more than one element is taken; empty if unclear."""
    one, dims = const(1), outer.dims or ()
    sizes = list(inner.buffer.shape) if inner.dims is None else [dim.extent or one for dim in inner.dims]
    if all(dim.is_point for dim in dims):
        skipped = len(dims) - len(sizes)
        return {axis + skipped: axis for axis, size in enumerate(sizes) if size != one and axis + skipped >= 0}
    taken = [axis for axis, dim in enumerate(dims) if dim.extent is not None and dim.extent != one]
    filled = [axis for axis, size in enumerate(sizes) if size != one]
    return dict(zip(taken, filled, strict=True)) if len(taken) == len(filled) else {}


def _start(dim: Dim) -> str:
    node = dim.node.lower if isinstance(dim.node, cst.Slice) else dim.node
    return "0" if node is None else code(node) if isinstance(node, cst.BinaryOperation) else factor(code(node))


def _written(dim: Dim) -> str:
    if isinstance(dim.node, cst.Slice):
        return code(cst.Subscript(cst.Name("x"), [cst.SubscriptElement(dim.node)]))[2:-1]
    return code(dim.node)
