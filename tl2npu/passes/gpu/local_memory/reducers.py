"""TL176: ``T.alloc_reducer`` becomes a tile with one element for each iteration, reduced once at the end."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Loop, Op, Operand, Scalar, Store, walk_with_parents
from tl2npu.kernel.regions import extent_text
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import argument, dtype_text, shape_text
from tl2npu.source.edits import Edits

_KINDS = ("sum", "max", "min")
_MATRIX = 2


@dataclass(eq=False)
class _Reducer:
    """All statements of one reducer."""

    buffer: Buffer
    kind: str
    starts: list[Op]
    updates: list[tuple[Store, Loop]]
    ends: list[Op]


def reducers(job: Job) -> None:
    """Rewrite every reducer; raises :class:`Blocked` for one whose partial results are looked at."""
    names = Names(job)
    for name in [b.name for b in job.kernel.buffers.values() if b.alloc == "alloc_reducer"]:
        buffer = next(b for b in job.kernel.buffers.values() if b.alloc == "alloc_reducer" and b.name == name)
        _rewrite(job, _read(job, buffer), names)


def _read(job: Job, buffer: Buffer) -> _Reducer:
    statement = buffer.statement
    assert statement is not None
    given = argument(buffer, 2, "op")
    kind = str(given.evaluated_value) if isinstance(given, cst.SimpleString) else "sum" if given is None else ""
    if kind not in _KINDS:
        raise Blocked("TL164", statement, f"a reducer by {code(given) if given is not None else kind} is not supported")
    found = _Reducer(buffer, kind, [], [], [])
    for stmt, parents in walk_with_parents(job.kernel.body):
        if not any(a.operand.buffer is buffer for a in accesses(stmt)):
            continue
        loop = next((p for p in parents if isinstance(p, Loop) and p.kind == "parallel"), None)
        if isinstance(stmt, Op) and stmt.op.name in ("clear", "fill", "reducer_init"):
            found.starts.append(stmt)
        elif isinstance(stmt, Op) and stmt.op.name == "finalize_reducer":
            found.ends.append(stmt)
        elif isinstance(stmt, Store) and stmt.target.buffer is buffer and loop is not None and not found.ends:
            found.updates.append((stmt, loop))
        elif not found.ends:
            raise Blocked("TL175", stmt.node, f"`{buffer.name}` is read before `T.finalize_reducer`")
    if len(found.ends) != 1 or len(found.starts) > 1 or not found.updates:
        raise Blocked(
            "TL175", statement, f"`{buffer.name}` needs one clear, at least one update and one `T.finalize_reducer`"
        )
    return found


def _rewrite(job: Job, found: _Reducer, names: Names) -> None:
    buffer = found.buffer
    ranges = found.updates[0][1].ranges
    extents = [item.extent for item in ranges]
    own = [item.name for item in ranges]
    for store, loop in found.updates:
        indices = [code(dim.node) for dim in store.target.dims or ()]
        if [item.extent for item in loop.ranges] != extents or len(extents) != _MATRIX:
            raise Blocked("TL175", store.node, f"the loops that update `{buffer.name}` have different shapes")
        if len(indices) != 1 or indices[0] not in own or [item.name for item in loop.ranges] != own:
            raise Blocked("TL175", store.node, f"`{buffer.name}` is updated at a computed index")
    first = code((found.updates[0][0].target.dims or ())[0].node)
    axis = 1 - own.index(first)
    if any(code((store.target.dims or ())[0].node) != first for store, _ in found.updates):
        raise Blocked("TL175", found.updates[0][0].node, f"`{buffer.name}` is updated along two axes")
    part = names.fresh(f"{buffer.name}_part")
    edits = Edits(job.file.index)
    assert buffer.statement is not None
    dtype = dtype_text(buffer)
    shape = ", ".join(extent_text(item) for item in ranges)
    lines = f"{buffer.name} = T.alloc_fragment({shape_text(buffer)}, {dtype})\n"
    edits.replace_many(
        buffer.statement, parse(job, f"{lines}{part} = T.alloc_fragment(({shape}), {dtype})\n", buffer.node)
    )
    value = _neutral(found, dtype)
    if found.starts:
        edits.replace_many(found.starts[0].node, parse(job, f"T.fill({part}, {value})\n", found.starts[0].node))
    else:
        raise Blocked("TL175", buffer.node, f"`{buffer.name}` is never cleared")
    for store, _ in found.updates:
        _update(job, found, store, part, own, edits)
    end = found.ends[0]
    result = end.args.get("dst")
    out = code(result.node) if isinstance(result, Operand) else buffer.name
    edits.replace_many(end.node, parse(job, f"T.reduce_{found.kind}({part}, {out}, dim={axis})\n", end.node))
    job.change("TL176", buffer.node, f"wrote one reduction of `{buffer.name}` for `T.finalize_reducer`")
    job.apply(edits)


def _neutral(found: _Reducer, dtype: str) -> str:
    """What a part starts with; a reducer that starts with a number counts it once, so that is refused."""
    start = found.starts[0] if found.starts else None
    value = start.args.get("value") or start.args.get("init") if start is not None else None
    if found.kind == "sum":
        zero = value is None or (isinstance(value, Scalar) and code(value.node) in ("0", "0.0"))
        if not zero and start is not None:
            raise Blocked("TL175", start.node, f"`{found.buffer.name}` starts with a non-neutral value")
        return "0"
    sign = "-" if found.kind == "max" else ""
    neutral = f"{sign}T.infinity({dtype})"
    infinite = isinstance(value, Scalar) and "infinity" in code(value.node)
    if start is not None and start.op.name != "reducer_init" and not infinite:
        raise Blocked("TL175", start.node, f"`{found.buffer.name}` starts with a non-neutral value")
    return neutral


def _update(job: Job, found: _Reducer, store: Store, part: str, own: list[str], edits: Edits) -> None:
    """``o[i] += e`` becomes ``part[i, j] += e``, ``o[i] = T.max(o[i], e)`` the same with the part."""
    index = ", ".join(own)
    replaced: list[cst.CSTNode] = [store.target.node]
    if not store.augmented:
        replaced += [load.node for load in store.value.loads if load.buffer is found.buffer]
        value = store.value.node
        name = job.file.names.resolve(value.func) if isinstance(value, cst.Call) else None
        if found.kind == "sum" or name != f"tilelang.language.{found.kind}" or len(replaced) != _MATRIX:
            raise Blocked("TL175", store.node, f"`{found.buffer.name}` is not updated by {found.kind}")
    elif found.kind != "sum" or not isinstance(store.node, cst.AugAssign):
        raise Blocked("TL175", store.node, f"`{found.buffer.name}` is not updated by {found.kind}")
    elif not isinstance(store.node.operator, cst.AddAssign):
        raise Blocked("TL175", store.node, f"`{found.buffer.name}` is not updated by a sum")
    for node in replaced:
        edits.replace(node, cst.parse_expression(f"{part}[{index}]"))
