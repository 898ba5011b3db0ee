"""TL621: ``b = T.view(a, shape, dtype)`` that only reuses the memory of a tile, between which no value passes.

On a GPU that saves shared memory. On the NPU the memory planning of the compiler gives two tiles one place by itself
where their lifetimes allow it, so that ``b`` is a tile of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, touches
from tl2npu.kernel.comparisons import at_most
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import (
    Branch,
    Buffer,
    Copy,
    Kernel,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Stmt,
    Store,
    children,
)
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import const
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

_VIEW = "tilelang.language.view"
_PARAMETERS = ("src", "shape", "dtype")


def to_tiles(job: Job) -> None:
    """Allocate a tile for every such view."""
    views = own_tiles(job)
    for view in views:
        job.change("TL621", view.node, f"`{view.name}` is a tile of its own: it only reused memory")
    job.apply(_edits(job, views))


def own_tiles(job: Job) -> list[Let]:
    """The views of a kernel that may be tiles of their own."""
    views = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Let) and _parts(job, stmt) is not None]
    if not views:
        return []
    bases = {view.name: _base(job, view) for view in views}
    trial = job.copied()
    trial.apply(_edits(trial, views))
    buffers = trial.kernel.buffers
    return [
        view
        for view in views
        if list(bases.values()).count(bases[view.name]) == 1
        and {view.name, bases[view.name]} <= buffers.keys()
        and _are_apart(trial.kernel, buffers[bases[view.name]], buffers[view.name])
    ]


def _base(job: Job, view: Let) -> str:
    parts = _parts(job, view)
    assert parts is not None
    return code(parts["src"])


def _parts(job: Job, stmt: Let) -> dict[str, cst.BaseExpression] | None:
    """The arguments of ``T.view`` of a whole tile on the chip, with shape and type."""
    call = stmt.value.node
    if stmt.via or not isinstance(call, cst.Call) or job.file.names.resolve(call.func) != _VIEW:
        return None
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    given = dict(zip(_PARAMETERS, (arg.value for arg in call.args if arg.keyword is None), strict=False)) | named
    base = given.get("src")
    buffer = job.kernel.buffers.get(base.value) if isinstance(base, cst.Name) else None
    if buffer is None or buffer.memory is Memory.GM or not isinstance(buffer.node, cst.Call):
        return None
    return given if given.keys() == set(_PARAMETERS) else None


def _edits(job: Job, views: Sequence[Let]) -> Edits:
    edits = Edits(job.file.index)
    for view in views:
        parts = _parts(job, view)
        assert parts is not None
        made = cst.ensure_type(job.kernel.buffers[code(parts["src"])].node, cst.Call)
        text = f"{code(made.func)}({code(parts['shape'])}, {code(parts['dtype'])})"
        edits.replace(view.value.node, cst.parse_expression(text))
    return edits


def _are_apart(kernel: Kernel, one: Buffer, other: Buffer) -> bool:
    """Whether the uses of two tiles follow one another, and each begin with a store to the whole tile: also in every
    run of a loop around them."""
    touching = innermost(kernel, one, other)
    users = [[buffer for buffer in (one, other) if touches(stmt, buffer)] for stmt in touching]
    if any(len(used) != 1 for used in users):
        return False
    first = [used[0] for used in users]
    changes = [place for place in range(1, len(first)) if first[place] is not first[place - 1]]
    return len(changes) == 1 and all(overwrites(touching[place], first[place]) for place in (0, changes[0]))


def innermost(kernel: Kernel, *buffers: Buffer) -> list[Stmt]:
    """The statements that use some tiles, in the innermost block that holds all of them."""
    body = kernel.body
    while True:
        touching = [stmt for stmt in body if touches(stmt, *buffers)]
        inner = [part for part in children(touching[0]) if part] if len(touching) == 1 else []
        if len(inner) != 1:
            return touching
        body = inner[0]


def overwrites(stmt: Stmt, buffer: Buffer, ranges: tuple[Range, ...] = (), guard: Branch | None = None) -> bool:
    """Whether a statement first stores to the whole tile, without reading it."""
    if isinstance(stmt, Copy):
        return guard is None and stmt.dst.buffer is buffer and stmt.dst.is_whole and stmt.src.buffer is not buffer
    if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM:
        whole = [operand.is_whole for _, operand in stmt.operands if operand.buffer is buffer]
        return guard is None and whole == [True] and _clears(stmt.call, ranges)
    if isinstance(stmt, Op):
        target = stmt.args.get("buffer")
        return guard is None and stmt.op.kind is Kind.FILL and isinstance(target, Operand) and target.is_whole
    if isinstance(stmt, Store):
        reads = any(a.reads and a.operand.buffer is buffer for a in accesses(stmt))
        return stmt.target.buffer is buffer and not reads and _covers(stmt, ranges, guard)
    if isinstance(stmt, Branch):
        bare = len(stmt.then) == 1 and not stmt.orelse and guard is None
        return bare and overwrites(stmt.then[0], buffer, ranges, stmt)
    if isinstance(stmt, Loop):
        first = next(inner for inner in stmt.body if touches(inner, buffer))
        return overwrites(first, buffer, (*ranges, *stmt.ranges), guard)
    return False


def _clears(call: cst.Call, ranges: tuple[Range, ...]) -> bool:
    """Whether a gemm begins a sum, always or in the first turn of a loop around it."""
    first = {"True", *(f"{item.name} == 0" for item in ranges if item.start.is_zero)}
    return any(arg.keyword and arg.keyword.value == "clear_accum" and code(arg.value) in first for arg in call.args)


def _covers(stmt: Store, ranges: tuple[Range, ...], guard: Branch | None) -> bool:
    """Whether the loops around a store go through the whole tile; a guard may say where the rows of the tile end."""
    shape, bounds, ends = stmt.target.buffer.shape, Bounds({}), list[Range]()
    for dim, size in zip(stmt.target.dims or (), shape, strict=False):
        item = next((item for item in ranges if item.var == dim.lo), None)
        if not dim.is_point or item is None or not item.start.is_zero or item.step is not None or item in ends:
            return False
        if item.extent != size and not (guard is not None and bounds.is_not_negative(item.extent - size)):
            return False
        ends.append(item)
    if len(ends) != len(shape):
        return False
    limit = at_most(guard.cond.sym) if guard is not None else None
    return guard is None or any(limit == (item.var, size - const(1)) for item, size in zip(ends, shape, strict=True))
