"""TL230: explicit memories become ``alloc_shared`` and ``alloc_fragment`` where the compiler infers the same memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import libcst as cst

from tl2npu.kernel.bindings import single_assignments
from tl2npu.kernel.memory.inferred import Use, certain_uses, inferred
from tl2npu.kernel.model import Alloc, Buffer, Memory
from tl2npu.passes.job import Job
from tl2npu.passes.names import imports
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned

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


def take_apart(job: Job) -> None:
    """Write the allocations of the kernel's own text that stand in one assignment one below the other (TL207).

    What happens to a tile later, that it is given another size or memory or that it goes, is said of one allocation.
    """
    allocs = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Alloc) and not stmt.via]
    together = {
        id(stmt.node): stmt.node for stmt in allocs if stmt.buffer.node is not getattr(stmt.node, "value", None)
    }
    edits = Edits(job.file.index)
    for node in together.values():
        assert isinstance(node, cst.Assign)
        if len(node.targets) > 1:
            continue
        pairs = single_assignments(node.targets[0].target, node.value)
        if len(pairs) < 2 or not _one_by_one(pairs):
            continue
        edits.replace_many(node, [_assignment(left, right) for left, right in pairs])
        job.change("TL207", node, "wrote one statement per allocation")
    job.apply(edits)


def _one_by_one(pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]]) -> bool:
    """No value needs what a name before it had meant."""
    bound: set[str] = set()
    for left, right in pairs:
        if bound & mentioned(right):
            return False
        bound |= mentioned(left)
    return True


def _assignment(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(cast("cst.Name", target))], value)
