"""TL156: copies between tiles that convert as no ``T.copy`` of an NPU does become element-wise loops.

``T.copy`` of a GPU converts as C does: floats are cut off, integers lose their upper bits. That of an NPU is one
``Cast`` that rounds and saturates, and that many pairs of types do not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.kernel import element_types
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.source.edits import Edits

_AXES = ("i", "j", "k", "m", "n")


def rewrite(job: Job) -> None:
    """Write such copies as loops, whose statements the next pass converts step by step."""
    edits = Edits(job.file.index)
    for stmt in list(job.kernel.walk()):
        if isinstance(stmt, Copy) and _differs(stmt):
            edits.replace_many(stmt.node, parse(job, _loop(job, stmt), stmt.node))
            types = f"{stmt.src.buffer.dtype} to {stmt.dst.buffer.dtype}"
            job.change("TL156", stmt.node, f"`T.copy` does not convert {types} like a GPU")
    job.apply(edits)


def _differs(copy: Copy) -> bool:
    sides = (copy.src.buffer, copy.dst.buffer)
    if any(buffer.memory is not Memory.UB for buffer in sides):
        return False
    source, target = (element_types.plain(buffer.dtype) for buffer in sides)
    if source == target or not (element_types.is_known(source) and element_types.is_known(target)):
        return False
    return element_types.conversions(source, target) != [element_types.Step(target)]


def _loop(job: Job, copy: Copy) -> str:
    """The copy as a loop. Raises :class:`Blocked` for regions that do not say how large they are."""
    sides = [list(_axes(copy, operand)) for operand in (copy.src, copy.dst)]
    extents = [[extent for _, extent in side if extent] for side in sides]
    if extents[0] != extents[1] or not extents[0]:
        text = f"`{code(copy.src.node)}` and `{code(copy.dst.node)}` have different shapes"
        raise Blocked("TL154", copy.node, f"{text}, but the conversion needs equal ones")
    names = Names(job).variables(*((name,) for name in _AXES[: len(extents[0])]), inside=[copy.node])
    elements = []
    for operand, side in zip((copy.src, copy.dst), sides, strict=True):
        free = iter(names)
        parts = [_index(start, next(free) if extent else "") for start, extent in side]
        elements.append(f"{operand.buffer.name}[{', '.join(parts)}]")
    return f"for {', '.join(names)} in T.Parallel({', '.join(extents[0])}):\n    {elements[1]} = {elements[0]}\n"


def _axes(copy: Copy, operand: Operand) -> Iterator[tuple[str, str]]:
    """Start and extent of every axis; no extent for an index."""
    shape = operand.buffer.shape_nodes
    if operand.dims is None:
        yield from (("0", code(node)) for node in shape)
        return
    for dim, node in zip(operand.dims, shape, strict=False):
        if dim.is_point:
            yield code(dim.node), ""
        elif dim.lo.is_zero and dim.extent is not None and str(dim.extent) == code(node):
            yield "0", code(node)
        elif dim.lo.constant is not None and dim.extent is not None and dim.extent.constant is not None:
            yield str(dim.lo.constant), str(dim.extent.constant)
        else:
            raise Blocked("TL154", copy.node, f"`{code(operand.node)}`: write the conversion as a T.Parallel loop")


def _index(start: str, name: str) -> str:
    if not name:
        return start
    return name if start == "0" else f"{name} + {start}"
