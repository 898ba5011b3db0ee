"""TL159: a small table that is loaded only to be read element by element is read from global memory.

A block mask or a list of indices decides for both cores what they do; a copy of it on chip would belong to one of them
(measured: condgm right, a condition in UB around cube statements refused as TL865).
"""

from __future__ import annotations

from collections import Counter

import libcst as cst

from tl2npu.kernel.access import accesses, accesses_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import (
    Alloc,
    Buffer,
    Copy,
    Kernel,
    Let,
    Loop,
    Operand,
    Stmt,
    Store,
    in_parallel,
    walk_with_parents,
)
from tl2npu.passes.job import Job
from tl2npu.passes.writing.plan import Plan
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned

_ELEMENT = "__element__"


def to_global(job: Job) -> None:
    """Read such tables where they come from; the tile and its load go."""
    for buffer in list(job.kernel.buffers.values()):
        if buffer.is_tile:
            _replace(job, buffer)


def _replace(job: Job, buffer: Buffer) -> None:
    kernel = job.kernel
    load = _load(kernel, buffer)
    if load is None:
        return
    source = _Source.of(load, buffer)
    if source is None or any(access.writes for _, access in accesses_of(kernel, source.tensor)):
        return
    reads = _reads(kernel, buffer, load)
    if not reads:
        return
    edits = Edits(job.file.index)
    for operand in reads:
        assert operand.dims is not None
        element = cst.parse_expression(source.element([code(dim.node) for dim in operand.dims]))
        if isinstance(job.file.index.parent(operand.node), cst.If):
            element = element.with_changes(lpar=(), rpar=())
        edits.replace(operand.node, element)
        job.change("TL159", operand.node, f"`{buffer.name}` is read from `{source.tensor.name}`")
    statement = buffer.statement
    job.apply(edits)
    plan = Plan(job)
    plan.remove(load.node)
    if statement is not None:
        plan.remove(statement)
    plan.apply()


class _Source:
    """Where the elements of a table lie in a tensor."""

    def __init__(self, tensor: Buffer, before: list[str], starts: list[str], value: str = _ELEMENT) -> None:
        self.tensor = tensor
        self._before = before
        self._starts = starts
        self._value = value  # what is stored, with the element marked

    @staticmethod
    def of(load: Stmt, buffer: Buffer) -> _Source | None:
        """Read a load; None if it does more than copy the table."""
        if isinstance(load, Copy):
            return _Source._of_operand(load.src, len(buffer.shape))
        assert isinstance(load, Loop)
        (store,) = load.body
        assert isinstance(store, Store)
        (operand,) = store.value.loads
        if operand.dims is None or store.target.dims is None or len(load.ranges) != len(buffer.shape):
            return None
        names = [item.name for item in load.ranges]
        if [code(dim.node) for dim in store.target.dims] != names or not all(r.start.is_zero for r in load.ranges):
            return None
        rank = len(names)
        tail = operand.dims[-rank:]
        if any(not dim.is_point or dim.lo != item.var for dim, item in zip(tail, load.ranges, strict=True)):
            return None
        value = _ELEMENT
        if store.value.node is not operand.node:
            value = f"({code(store.value.node).replace(code(operand.node), _ELEMENT)})"
            if value.count(_ELEMENT) != 1 or mentioned(cst.parse_expression(value)) & set(names):
                return None
        return _Source(operand.buffer, [code(dim.node) for dim in operand.dims[:-rank]], ["0"] * rank, value)

    @staticmethod
    def _of_operand(operand: Operand, rank: int) -> _Source | None:
        dims = operand.dims
        if dims is None:
            return _Source(operand.buffer, [], ["0"] * rank) if len(operand.buffer.shape) == rank else None
        ends = [dim for dim in dims if not dim.is_point]
        if ends and (len(ends) != rank or any(not d.is_point for d in dims[:-rank])):
            return None
        before, tail = dims[:-rank], dims[-rank:]
        starts = []
        for dim in tail:
            if isinstance(dim.node, cst.Slice):
                starts.append(code(dim.node.lower) if dim.node.lower is not None else "0")
            else:
                starts.append(code(dim.node))
        return _Source(operand.buffer, [code(dim.node) for dim in before], starts)

    def element(self, index: list[str]) -> str:
        """The text of one element."""
        inner = [i if start == "0" else f"{_term(start)} + {i}" for start, i in zip(self._starts, index, strict=True)]
        return self._value.replace(_ELEMENT, f"{self.tensor.name}[{', '.join([*self._before, *inner])}]")


def _term(text: str) -> str:
    node = cst.parse_expression(text)
    plain = isinstance(node, (cst.Name, cst.Integer, cst.Call, cst.Subscript, cst.BinaryOperation))
    return text if plain else f"({text})"


def _load(kernel: Kernel, buffer: Buffer) -> Stmt | None:
    """The one statement that fills the table: a copy from global memory or a loop of element stores from there."""
    found: list[Stmt] = []
    for stmt, parents in walk_with_parents(kernel.body):
        if not any(a.writes and a.operand.buffer is buffer for a in accesses(stmt)):
            continue
        if isinstance(stmt, Copy) and not stmt.src.buffer.is_tile and stmt.dst.is_whole:
            found.append(stmt)
        elif isinstance(stmt, Store) and not stmt.augmented and parents and isinstance(parents[-1], Loop):
            loop = parents[-1]
            loads = stmt.value.loads
            plain = len(loads) == 1 and not loads[0].buffer.is_tile
            converts = plain and not _same_values(stmt, buffer, loads[0])
            if len(loop.body) != 1 or not plain or converts:
                return None
            found.append(loop)
        else:
            return None
    return found[0] if len(found) == 1 else None


def _same_values(store: Store, buffer: Buffer, element: Operand) -> bool:
    """The table holds what the expression says: its type does not cut anything off."""
    if store.value.node is element.node:
        return buffer.dtype in (element.buffer.dtype, "bool")
    return buffer.dtype == "bool" and isinstance(store.value.node, cst.Comparison)


def _reads(kernel: Kernel, buffer: Buffer, load: Stmt) -> list[Operand]:
    """Every read, if all of them are single elements outside of element-wise loops and after the load; else none."""
    result: list[Operand] = []
    after = False
    names = _changed_names(kernel)
    loaded_in: tuple[Stmt, ...] = ()
    for stmt, parents in walk_with_parents(kernel.body):
        if stmt is load:
            after, loaded_in = True, parents
            continue
        if load in parents or isinstance(stmt, Alloc):
            continue
        for access in accesses(stmt):
            if access.operand.buffer is not buffer:
                continue
            parallel = in_parallel((*parents, stmt))
            if not after or not access.element or parallel or access.operand.dims is None:
                return []
            if parents[: len(loaded_in)] != loaded_in or not all(d.is_point for d in access.operand.dims):
                return []
            result.append(access.operand)
    used = mentioned(load.node)
    return [] if used & names else result


def _changed_names(kernel: Kernel) -> set[str]:
    """Names that are assigned more than once: what the load was addressed with may mean something else later."""
    counts = Counter(stmt.name for stmt in kernel.walk() if isinstance(stmt, Let))
    return {name for name, count in counts.items() if count > 1}
