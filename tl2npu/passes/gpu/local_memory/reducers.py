"""TL176: ``T.alloc_reducer`` becomes a tile with one element for each iteration, reduced once at the end.

Loops of other shapes have a tile of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Loop, Op, Operand, Scalar, Store, walk_with_parents
from tl2npu.kernel.regions import extent_text
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, parse, shape_text
from tl2npu.passes.writing.tiles import argument, dtype_text
from tl2npu.passes.writing.tiles import shape_text as shape_of
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned

_KINDS = ("sum", "max", "min")


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


@dataclass(frozen=True)
class _Layout:
    """A tile of partial results: its ``shape`` as texts, its ``sizes``, its ``element`` in an update.

    ``summed``: the axes over which the partial results are one at the end, the last one first.
    """

    shape: tuple[str, ...]
    sizes: tuple[Sym, ...]
    element: str
    summed: tuple[int, ...]


def _layout(buffer: Buffer, store: Store, loop: Loop) -> _Layout:
    """One partial result for each iteration: along the axes of the loop, and along those of the reducer before them.

    Raises :class:`Blocked` for an index that is worked out from those of the loop.
    """
    own = [item.name for item in loop.ranges]
    indices = [dim.node for dim in store.target.dims or ()]
    kept = [code(node) for node in indices if code(node) in own]
    texts, sizes = [extent_text(item) for item in loop.ranges], [item.extent for item in loop.ranges]
    if len(set(kept)) < len(indices) and any(mentioned(node) & {*own} for node in indices):
        raise Blocked("TL175", store.node, f"`{buffer.name}` is updated at a computed index")
    element, first = own, 0
    if not kept and any(size != const(1) for size in buffer.shape):
        element, first = [*map(code, indices), *own], len(indices)
        texts, sizes = [*(code(node) for node in buffer.shape_nodes), *texts], [*buffer.shape, *sizes]
    summed = [first + place for place, name in enumerate(own) if name not in kept]
    return _Layout(tuple(texts), tuple(sizes), ", ".join(element), tuple(reversed(summed)))


def _rewrite(job: Job, found: _Reducer, names: Names) -> None:
    buffer = found.buffer
    assert buffer.statement is not None
    if not found.starts:
        raise Blocked("TL175", buffer.node, f"`{buffer.name}` is never cleared")
    dtype = dtype_text(buffer)
    value = _neutral(found, dtype)
    parts: dict[tuple[tuple[Sym, ...], tuple[int, ...]], tuple[str, _Layout]] = {}
    edits = Edits(job.file.index)
    for store, loop in found.updates:
        layout = _layout(buffer, store, loop)
        key = layout.sizes, layout.summed
        if key not in parts:
            parts[key] = names.fresh(f"{buffer.name}_part"), layout
        _update(job, found, store, f"{parts[key][0]}[{layout.element}]", edits)
    allocations = [f"{buffer.name} = T.alloc_fragment({shape_of(buffer)}, {dtype})"]
    fills, ends = list[str](), list[str]()
    end = found.ends[0]
    result = end.args.get("dst")
    out = code(result.node) if isinstance(result, Operand) else buffer.name
    for part, layout in parts.values():
        tile, shape = part, list(layout.shape)
        allocations.append(f"{part} = T.alloc_fragment({shape_text(job.kernel, shape)}, {dtype})")
        fills.append(f"T.fill({part}, {value})")
        for axis in layout.summed[:-1]:
            del shape[axis]
            longer, tile = tile, names.fresh(f"{part}_{found.kind}")
            allocations.append(f"{tile} = T.alloc_fragment({shape_text(job.kernel, shape)}, {dtype})")
            ends.append(f"T.reduce_{found.kind}({longer}, {tile}, dim={axis})")
        more = ", clear=False" if part != next(iter(parts.values()))[0] else ""
        ends.append(f"T.reduce_{found.kind}({tile}, {out}, dim={layout.summed[-1]}{more})")
    for node, lines in ((buffer.statement, allocations), (found.starts[0].node, fills), (end.node, ends)):
        edits.replace_many(node, parse(job, "\n".join(lines), node))
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
    if isinstance(value, Scalar) and "infinity" in code(value.node):
        return code(value.node)
    if start is not None and start.op.name != "reducer_init":
        raise Blocked("TL175", start.node, f"`{found.buffer.name}` starts with a non-neutral value")
    return f"{'-' if found.kind == 'max' else ''}T.infinity({dtype})"


def _update(job: Job, found: _Reducer, store: Store, part: str, edits: Edits) -> None:
    """``o[i] += e`` becomes ``part[i, j] += e``, ``o[i] = T.max(o[i], e)`` the same with the part."""
    before = [] if store.augmented else [load.node for load in store.value.loads if load.buffer is found.buffer]
    if not store.augmented:
        value = store.value.node
        name = job.file.names.resolve(value.func) if isinstance(value, cst.Call) else None
        if found.kind == "sum" or name != f"tilelang.language.{found.kind}" or len(before) != 1:
            raise Blocked("TL175", store.node, f"`{found.buffer.name}` is not updated by {found.kind}")
    elif found.kind != "sum" or not isinstance(store.node, cst.AugAssign):
        raise Blocked("TL175", store.node, f"`{found.buffer.name}` is not updated by {found.kind}")
    elif not isinstance(store.node.operator, cst.AddAssign):
        raise Blocked("TL175", store.node, f"`{found.buffer.name}` is not updated by a sum")
    for node in (store.target.node, *before):
        edits.replace(node, cst.parse_expression(part))
