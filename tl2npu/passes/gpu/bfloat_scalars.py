"""TL711: single bfloat16 elements of a tensor are converted in UB, as no scalar is (``kernel/bfloat_scalars.py``).

A copy of one element into a tile, and of that tile into one of float32, is done by the vector core.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.bfloat_scalars import Converted, converted
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Loop, Memory, Stmt
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import allocate_above, dtype_text
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_LANES = 16  # elements of a block of 32 bytes


def to_float32(job: Job) -> None:
    """Convert every such element in front of the statement that uses it, or of the ``T.Parallel`` around that."""
    values = _load(job)
    if not values:
        return
    edits, current = Edits(job.file.index), dict[str, str]()
    by_stmt: dict[int, list[Converted]] = {}
    for use in _uses(job):
        by_stmt.setdefault(id(use.stmt), []).append(use)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy) and stmt.dst.buffer.name in values:
            current[values[stmt.dst.buffer.name]] = stmt.dst.buffer.name
        for use in by_stmt.get(id(stmt), ()):
            if code(use.node) in current:
                edits.replace(use.node, cst.parse_expression(f"{current[code(use.node)]}[0]"))
    job.apply(edits)


def _uses(job: Job) -> list[Converted]:
    """Elements of tensors; those of tiles have vector instructions, or TL711 tells of them."""
    found = converted(job.kernel, job.file.evaluator, lambda buffer: plain(element_type(job, buffer)) == "bfloat16")
    return [use for use in found if use.operand.buffer.memory is Memory.GM]


def _load(job: Job) -> dict[str, str]:
    """Write the copies; the tiles of float32, each with the text of the element that is in it."""
    names, values, allocations = Names(job), dict[str, str](), list[str]()
    lines: dict[int, tuple[Stmt, list[str], set[str]]] = {}
    for use in _uses(job):
        nests = [parent for parent in use.parents if isinstance(parent, Loop) and parent.kind == "parallel"]
        place, shown = nests[0] if nests else use.stmt, code(use.node)
        inner = {item.name for loop in nests for item in loop.ranges}
        _, written, known = lines.get(id(place), (place, list[str](), set[str]()))
        if inner & {name.value for name in names_in(use.node)} or shown in known or place.node not in job.file.index:
            continue
        base = use.operand.buffer.name.lower()
        part, value = names.fresh(f"{base}_part"), names.fresh(f"{base}_float32")
        allocations += [f"{part} = T.alloc_shared(({_LANES},), {dtype_text(use.operand.buffer)})"]
        allocations += [f'{value} = T.alloc_shared(({_LANES},), "float32")']
        written += [f"T.tile.fill({part}, 0.0)", f"T.copy({_window(use.node)}, {part})", f"T.copy({part}, {value})"]
        known.add(shown)
        lines[id(place)] = place, written, known
        values[value] = shown
        job.change("TL711", use.stmt.node, f"`{shown}` is converted in UB: the NPU converts no bfloat16 scalars")
    edits = Edits(job.file.index)
    for place, written, _ in lines.values():
        edits.replace_many(place.node, [*parse(job, "\n".join(written) + "\n", place.node), place.node])
    if lines:
        first = next(iter(lines.values()))[0]
        allocate_above(job, edits, first, "\n".join(allocations) + "\n", first.node)
    job.apply(edits)
    return values


def _window(node: cst.Subscript) -> str:
    """``W[b, i : i + 1]`` for ``W[b, i]``."""
    *outer, last = (code(item.slice) for item in node.slice)
    return f"{code(node.value)}[{', '.join([*outer, f'{last} : {last} + 1'])}]"
