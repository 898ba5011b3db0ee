"""TL230: explicit memories become ``alloc_shared`` and ``alloc_fragment`` where the compiler infers the same memory."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tl2npu.kernel.memory.inferred import Use, certain_uses, inferred
from tl2npu.kernel.model import Alloc, Buffer, Memory
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.source.edits import Edits

_SHARED = {"alloc_ub": Memory.UB, "alloc_L1": Memory.L1}


def developer_name(buffer: Buffer, use: Use) -> str | None:
    """The Developer-mode allocation of a buffer; None if only the explicit one gives this memory (R-ALLOCINFER)."""
    if buffer.alloc in _SHARED:
        return "alloc_shared" if inferred(use) is _SHARED[buffer.alloc] else None
    if buffer.alloc == "alloc_L0C":
        return "alloc_fragment" if use.cube or use.copied else None
    return None


def infer_allocations(job: Job) -> None:
    """Rename every allocation for which the inference gives the memory that the author chose."""
    used = certain_uses(job.kernel, job.late)
    rename(job, lambda buffer: developer_name(buffer, used.get(buffer, Use())))


def rename(job: Job, name_of: Callable[[Buffer], str | None]) -> None:
    """Give allocations other names; None for one that keeps its own."""
    edits = Edits(job.file.index)
    seen: set[int] = set()
    replaced: set[str] = set()
    bare: set[str] = set()
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Alloc) or not isinstance(stmt.buffer.node, cst.Call):
            continue
        buffer, func = stmt.buffer, stmt.buffer.node.func
        name = name_of(buffer)
        if name is None or id(func) in seen:
            continue
        spelled = imports.spelling(job, name, func)
        seen.add(id(func))
        if spelled == name:
            bare.add(name)
        edits.replace(func, cst.parse_expression(spelled))
        job.change("TL230", buffer.node, f"`{buffer.name}`: {buffer.alloc} -> {name}")
        replaced.add(buffer.alloc)
    job.apply(edits)
    imports.complete(job, bare, replaced)
