"""TL119: a copy with a step, ``T.copy(x[:, 0::2], even)``, as a loop over its elements, which the compiler parses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import MOST_AXES
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits


@dataclass(frozen=True)
class _Axis:
    """One index of a region as text: ``lower + step * variable``; ``extent`` is empty for a single index."""

    lower: str
    step: str
    extent: str

    def at(self, name: str) -> str:
        """The index of an element."""
        scaled = name if self.step == "1" else f"{factor(self.step)} * {name}"
        return scaled if self.lower == "0" else f"{scaled} + {self.lower}"


def to_loops(job: Job) -> None:
    """Write copies of slices with a step element by element."""
    until_settled(job, partial(_one_to_loop, job))


def _one_to_loop(job: Job) -> bool:
    copies = (stmt for stmt in job.kernel.walk() if isinstance(stmt, Copy) and not stmt.via)
    copy = next((copy for copy in copies if any(map(_has_step, (copy.src, copy.dst)))), None)
    if copy is None:
        return False
    edits = Edits(job.file.index)
    new = parse(job, _loop(job, copy), copy.node)
    job.trace(new, copy.node)
    edits.replace_many(copy.node, new)
    job.change("TL119", copy.node, "a copy with a step as a parallel loop")
    job.apply(edits)
    return True


def _has_step(operand: Operand) -> bool:
    return any(slice_.step is not None and code(slice_.step) not in ("1", "None") for slice_ in _slices(operand.node))


def _slices(node: cst.BaseExpression) -> Iterator[cst.Slice]:
    elements = node.slice if isinstance(node, cst.Subscript) else ()
    return (element.slice for element in elements if isinstance(element.slice, cst.Slice))


def _loop(job: Job, copy: Copy) -> str:
    regions = [list(_axes(copy, operand)) for operand in (copy.src, copy.dst)]
    moving = [[axis for axis in region if axis.extent] for region in regions]
    counts = {len(axes) for axes in moving}
    if len(counts) != 1 or not 0 < counts.pop() <= MOST_AXES:
        raise Blocked("TL732", copy.node, "the two sides of a copy with a step have different axes")
    names = Names(job)
    found = [names.fresh(name) for name, _ in zip("ij", moving[0], strict=False)]
    pairs = zip(*moving, strict=True)
    extents = [min(pair, key=lambda axis: (axis.step != "1", len(axis.extent))).extent for pair in pairs]
    source, target = (_element(*side, found) for side in zip((copy.src, copy.dst), regions, strict=True))
    return f"for {', '.join(found)} in T.Parallel({', '.join(extents)}):\n    {target} = {source}\n"


def _element(operand: Operand, region: list[_Axis], names: list[str]) -> str:
    left = iter(names)
    return f"{operand.buffer.name}[{', '.join(axis.at(next(left)) if axis.extent else axis.lower for axis in region)}]"


def _axes(copy: Copy, operand: Operand) -> Iterator[_Axis]:
    """The axes of an operand; one without an index stands for all of its elements."""
    sizes = [code(size) for size in operand.buffer.shape_nodes]
    node = operand.node
    if not isinstance(node, cst.Subscript):
        yield from (_Axis("0", "1", size) for size in sizes)
        return
    if len(sizes) != len(node.slice):
        raise Blocked("TL732", copy.node, f"`{code(node)}` has another number of axes than its tile")
    if operand.dims is None or not any(isinstance(element.slice, cst.Slice) for element in node.slice):
        raise Blocked("TL732", copy.node, f"`{code(node)}` says where a part begins, not with which step it goes on")
    for element, size in zip(node.slice, sizes, strict=True):
        if isinstance(element.slice, cst.Index):
            yield _Axis(code(element.slice.value), "1", "")
            continue
        lower, upper, step = (None if part is None else code(part) for part in _bounds(element.slice))
        start, end, step = lower or "0", upper or size, step or "1"
        if step.startswith("-"):
            raise Blocked("TL732", copy.node, f"`{code(node)}` goes backwards")
        length = end if start == "0" else f"{factor(end)} - {factor(start)}"
        yield _Axis(start, step, length if step == "1" else f"T.ceildiv({length}, {step})")


def _bounds(slice_: cst.BaseSlice) -> tuple[cst.BaseExpression | None, ...]:
    assert isinstance(slice_, cst.Slice)
    return slice_.lower, slice_.upper, slice_.step
