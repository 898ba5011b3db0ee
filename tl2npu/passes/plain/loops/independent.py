"""TL119: loops whose iterations do not depend on each other become ``T.Parallel``, which vector instructions compute.

``T.parallel``, of TIR, says so. Of serial loops it is proved, for those along the rows of tiles: each iteration stores
elements of its own, in a whole row, from elements at the same place of other rows or from what is the same for all.
A ``T.vectorized`` loop that adds to one element is none of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Operand, Stmt, Store, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.plain.loops.axes import INDEPENDENT
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of

_PARALLEL = "tilelang.language.parallel"
_IN_ORDER = frozenset({"serial", "unroll"})
_FOR_ALL = frozenset({"alloc_shared", "alloc_fragment"})
"""Tiles of the block; what ``alloc_local`` gives may be that of one thread."""


def to_parallel(job: Job, *, proved: bool = True) -> None:
    """Write ``T.Parallel`` for such loops; ``proved``: also for those that do not say so."""
    edits = Edits(job.file.index)
    for call in (*_said(job), *(_proved(job) if proved else ())):
        edits.replace(call.func, expression(job, "T.Parallel", call.func))
        job.change("TL119", call, f"`{code(call)}` -> `T.Parallel`")
    for call in _adding(job):
        edits.replace(call.func, expression(job, "T.serial", call.func))
        job.change("TL119", call, f"`{code(call)}` -> `T.serial`: its iterations add to the same element")
    job.apply(edits)


def _adding(job: Job) -> Iterator[cst.Call]:
    """Vectorized loops of which each iteration stores to the same element: they are no vectors on a GPU either."""
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Loop) or stmt.kind != "vectorized" or stmt.via or stmt.call is None:
            continue
        stores = [inner for inner in walk(stmt.body) if isinstance(inner, Store)]
        if any(stmt.ranges[0].name not in mentioned(store.target.node) for store in stores):
            yield stmt.call


def _said(job: Job) -> Iterator[cst.Call]:
    for loop in nodes_of(job.located.node.body, cst.For):
        call = loop.iter
        if isinstance(call, cst.Call) and job.file.names.resolve(call.func) == _PARALLEL and _has_extent(call):
            yield call


def _proved(job: Job) -> Iterator[cst.Call]:
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not isinstance(stmt, Loop) or stmt.kind not in _IN_ORDER or stmt.via or stmt.call is None:
            continue
        around = any(isinstance(above, Loop) and above.kind in INDEPENDENT for above in parents)
        if not around and _has_extent(stmt.call) and _is_along_rows(stmt):
            yield stmt.call


def _has_extent(call: cst.Call) -> bool:
    return len(call.args) == 1 and call.args[0].keyword is None


def _is_along_rows(loop: Loop) -> bool:
    """Whether a loop does nothing but store whole rows of tiles, element by element."""
    (item,) = loop.ranges
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store) and not stmt.via]
    if len(stores) < len(loop.body) or not stores or not item.start.is_zero:
        return False
    written = {store.target.buffer for store in stores}
    for store in stores:
        target = store.target
        if target.buffer.alloc not in _FOR_ALL or target.buffer.shape[-1] != item.extent:
            return False
        if _place(target, item.name) != "own":
            return False
        for operand in _read(store):
            place = _place(operand, item.name)
            if place is None or (operand.buffer in written and place != "own"):
                return False
        inside = [name for operand in (target, *_read(store)) for name in names_in(operand.node)]
        if sum(name.value == item.name for name in names_in(store.node)) > sum(n.value == item.name for n in inside):
            return False  # a number of the loop as a value
    return True


def _read(stmt: Stmt) -> list[Operand]:
    return [access.operand for access in accesses(stmt) if access.reads]


def _place(operand: Operand, variable: str) -> str | None:
    """``own`` for an element of a row at the iteration's place, ``same`` for one that is the same in all of them."""
    dims = operand.dims
    if dims is None or not operand.is_indexed or len(dims) != len(operand.buffer.shape) or operand.loads:
        return None
    moving = [variable in mentioned(dim.node) for dim in dims]
    if not any(moving):
        return "same"
    alone = isinstance(dims[-1].node, cst.Name) and not any(moving[:-1])
    return "own" if alone else None
