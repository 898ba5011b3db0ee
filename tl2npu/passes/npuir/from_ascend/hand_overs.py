"""TL425: copies between the cores that AscendNPU IR makes by itself; both tiles become one.

``T.copy(l0c, ub)`` and ``T.copy(ub, l1)`` only say that the other core goes on with the tile. The tile that is copied
stands for its copy where neither is written while the other one's value is wanted
(:mod:`tl2npu.kernel.memory.liveness`); elsewhere the copy stays, as a copy of one tensor into another.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import accesses, copy_side
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.model import Alloc, Buffer, Copy, Kernel, Memory, Side, Stmt, walk
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def refuse_unwritten(job: Job) -> None:
    """Raise :class:`Blocked` for a tile that the text reads before anything is written to it."""
    liveness = Liveness(job.kernel)
    written: set[Buffer] = set()
    for step in liveness.steps:
        for tile in sorted(step.reads - step.writes - written, key=lambda one: one.name):
            if tile in liveness.unwritten and tile.memory is not Memory.VAR:
                text = f"`{tile.name}` is read here before any earlier statement writes it"
                raise Blocked("TL437", step.stmt.node, text)
        written |= step.writes


def collapse(job: Job) -> None:
    """Make one tile of the two of every hand-over that allows it."""
    while True:
        kernel = job.kernel
        liveness = Liveness(kernel)
        found = next((stmt for stmt in kernel.walk() if _can_go(kernel, stmt, liveness)), None)
        if found is None:
            return
        assert isinstance(found, Copy)
        _merge(job, found)


def _can_go(kernel: Kernel, stmt: Stmt, liveness: Liveness) -> bool:
    if not isinstance(stmt, Copy) or stmt.via or stmt.options:
        return False
    src, dst = stmt.src.buffer, stmt.dst.buffer
    if src is dst or copy_side(src.memory, dst.memory) is not Side.BOTH:
        return False
    if not (stmt.src.is_whole and stmt.dst.is_whole) or src.shape != dst.shape or plain(src.dtype) != plain(dst.dtype):
        return False
    if any(s.via for s in kernel.walk() for a in accesses(s) if a.operand.buffer in (src, dst)):
        return False
    return _allocated_before(kernel, src, dst) and not liveness.conflicts(src, dst)


def _allocated_before(kernel: Kernel, src: Buffer, dst: Buffer) -> bool:
    """The tile that stays exists wherever the other one is used."""
    known: set[Buffer] = {stmt.buffer for stmt in kernel.body if isinstance(stmt, Alloc)}
    if not {src, dst} <= known:
        return False
    for stmt in kernel.body:
        if isinstance(stmt, Alloc):
            if stmt.buffer is src:
                return True
        elif any(a.operand.buffer is dst for s in walk([stmt]) for a in accesses(s)):
            return False
    return False


def _merge(job: Job, copy: Copy) -> None:
    kernel = job.kernel
    src, dst = copy.src.buffer, copy.dst.buffer
    alloc = next(stmt for stmt in kernel.walk() if isinstance(stmt, Alloc) and stmt.buffer is dst)
    edits = Edits(job.file.index)
    edits.remove(copy.node)
    edits.remove(alloc.node)
    index = job.file.index
    gone = (copy.node, alloc.node)
    for name in names_in(kernel.launched.node.body):
        if name.value != dst.name or any(above in gone for above in index.ancestors(name)):
            continue
        parent = index.parent(name)
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            continue
        edits.replace(name, cst.Name(src.name))
    job.change("TL425", copy.node, f"used `{src.name}` for `{dst.name}`: the compiler transfers it between the cores")
    job.apply(edits)
