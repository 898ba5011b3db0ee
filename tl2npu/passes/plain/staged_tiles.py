"""TL613: a tile with an axis for the stages of a pipeline, ``a[k % 2, :, :]``, of which an iteration uses one stage.

On a GPU the next stage is loaded meanwhile. In program order every iteration loads its stage before it reads it, so
that no value passes from one to the next: one stage serves all.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Buffer, Kernel, Let, Loop, walk
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.plain.reused_memory import innermost, overwrites
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_IN_ORDER = frozenset({"serial", "pipelined", "unroll"})


def to_single(job: Job) -> None:
    """Drop the axis of every such tile."""
    for name in list(job.kernel.buffers):
        buffer = job.kernel.buffers[name]
        stage = _stage(job.kernel, buffer)
        subscripts = _subscripts(job, name) if stage is not None else []
        if stage is None or not subscripts:
            continue
        trial = job.copied()
        trial.apply(_edits(trial, buffer, subscripts))
        if _is_loaded_first(trial.kernel, trial.kernel.buffers[name], stage):
            job.change("TL613", buffer.node, f"one stage of `{name}`: each iteration loads it before it reads it")
            job.apply(_edits(job, buffer, subscripts))


def _stage(kernel: Kernel, buffer: Buffer) -> Sym | None:
    """The first index of all uses of a tile; None if they differ or do not change."""
    if not buffer.is_tile or len(buffer.shape) < 2 or not isinstance(buffer.node, cst.Call):
        return None
    found = set[Sym | None]()
    for stmt in kernel.walk():
        for access in accesses(stmt):
            if access.operand.buffer is buffer:
                dims = access.operand.dims or ()
                plain = len(dims) == len(buffer.shape) and dims[0].is_point and not dims[0].loads and not stmt.via
                found.add(dims[0].lo if plain else None)
    stage = found.pop() if len(found) == 1 else None
    return stage if stage is not None and stage.plain and stage.names else None


def _subscripts(job: Job, name: str) -> list[cst.Subscript]:
    """The uses of a tile; empty if one is no subscript, or if the shape is not written where it is allocated."""
    buffer, index = job.kernel.buffers[name], job.file.index
    assert isinstance(buffer.node, cst.Call)
    if not isinstance(buffer.node.args[0].value, (cst.Tuple, cst.List)):
        return []
    above = [index.parent(use) for use in names_in(job.located.node.body) if use.value == name]
    found = [node for node in above if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name)]
    return found if len(found) == len(above) - 1 else []


def _edits(job: Job, buffer: Buffer, subscripts: Sequence[cst.Subscript]) -> Edits:
    edits = Edits(job.file.index)
    assert isinstance(buffer.node, cst.Call)
    shape = buffer.node.args[0].value
    assert isinstance(shape, (cst.Tuple, cst.List))
    edits.remove(shape.elements[0])
    for use in subscripts:
        rest = [item.slice for item in use.slice[1:]]
        whole = all(isinstance(part, cst.Slice) and not (part.lower or part.upper or part.step) for part in rest)
        if whole:
            edits.replace(use, use.value)
        else:
            edits.remove(use.slice[0])
    return edits


def _is_loaded_first(kernel: Kernel, buffer: Buffer, stage: Sym) -> bool:
    """Whether a turn of the loop that picks the stage begins with a store to the whole tile, and picks only one."""
    touching = innermost(kernel, buffer)
    inside = {id(stmt) for stmt in walk(touching)}
    turns, others = set[str](), {stmt.name for stmt in kernel.walk() if isinstance(stmt, Let)}
    for stmt in kernel.walk():
        if isinstance(stmt, Loop):
            around = stmt.kind in _IN_ORDER and id(stmt) not in inside
            (turns if around else others).update(name for item in stmt.ranges for name in item.var.names)
    if not stage.names & turns or stage.names & others:
        return False
    return bool(touching) and overwrites(touching[0], buffer)
