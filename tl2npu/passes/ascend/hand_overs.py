"""TL210, TL215, TL216: a round trip through global memory becomes one on-chip copy.

Runs on a kernel without vid terms. The fused copy stands where the writer stood and the reader goes; where the
compiler would not find the first reader of the landing buffer (R-1CONS, R-ANCHOR) the copy lands in a fresh buffer and
the reader becomes a copy from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.positions import output_positions
from tl2npu.kernel.handover import (
    HandOver,
    Place,
    Region,
    Traffic,
    common_loops,
    disjoint,
    is_private,
    iterate_places,
    same_region,
    traffic,
)
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Alloc,
    Branch,
    Buffer,
    Copy,
    Kernel,
    Let,
    Loop,
    Memory,
    Op,
    Opaque,
    Range,
    Side,
    Stmt,
    Store,
    walk_with_parents,
)
from tl2npu.kernel.symbolic import const
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in

SHARED = "it also receives another tile"


@dataclass(frozen=True, eq=False)
class Fused:
    """The result: which tensors no longer carry anything."""

    emptied: tuple[Buffer, ...]
    count: int


def side(place: Place, tensor: Buffer) -> Side:
    """The core at the on-chip end of a copy with ``tensor``."""
    copy = place.copy
    memory = copy.src.buffer.memory if copy.dst.buffer is tensor else copy.dst.buffer.memory
    return Side.CUBE if memory in CUBE_MEMORY else Side.VECTOR


def find(kernel: Kernel, outputs: set[int]) -> tuple[list[HandOver], list[Buffer]]:
    """Every hand-over of the kernel and the tensors that only carry hand-overs; raises :class:`Blocked`."""
    found: list[HandOver] = []
    emptied: list[Buffer] = []
    for entry in traffic(kernel).values():
        if not entry.exchanged:
            continue
        sides = {side(place, entry.tensor) for place in iterate_places(entry)}
        other = [*entry.element_writes, *entry.element_reads]
        if other:
            raise Blocked("TL842", other[0].node, f"the cores also access `{entry.tensor.name}` without `T.copy`")
        if len(sides) == 1:
            _same_core(entry)
            continue
        pairs, rest = _pairs(entry, kernel)
        if rest or entry.tensor.index in outputs:
            for pair in pairs:
                _check_result(pair, rest)
        found += pairs
        if not rest:
            emptied.append(entry.tensor)
    return found, emptied


def _same_core(entry: Traffic) -> None:
    """A tensor that one core updates in place is no hand-over; anything else between the vector cores is unordered."""
    for reader in entry.readers:
        for writer in entry.writers:
            if not same_region(reader.region, writer.region) and not disjoint(reader.region, writer.region):
                raise Blocked(
                    "TL849",
                    writer.copy.node,
                    f"`{entry.tensor.name}` passes data between cores of one kind; Developer mode does not order them",
                )


def _pairs(entry: Traffic, kernel: Kernel) -> tuple[list[HandOver], list[Place]]:
    """Match each reader with its writer; what is left are writers of results (an output used as a hand-over)."""
    result: list[HandOver] = []
    left = list(entry.writers)
    for reader in entry.readers:
        same = [
            w for w in entry.writers if _matches(w, reader) and side(w, entry.tensor) is not side(reader, entry.tensor)
        ]
        own = [
            w for w in entry.writers if side(w, entry.tensor) is side(reader, entry.tensor) and w.order < reader.order
        ]
        if own:
            raise Blocked(
                "TL840", reader.copy.node, f"`{entry.tensor.name}` is written by both cores before it is read"
            )
        if len(same) > 1:
            raise Blocked("TL840", reader.copy.node, f"`{entry.tensor.name}` has {len(same)} writers for one reader")
        if not same:
            raise Blocked(_why_unmatched(entry), reader.copy.node, _unmatched_text(entry, reader))
        writer = same[0]
        if writer not in left:
            raise Blocked("TL840", reader.copy.node, f"several copies read the same tile of `{entry.tensor.name}`")
        left.remove(writer)
        row = None if same_region(writer.region, _aligned(writer, reader)) else _row_range(writer)
        result.append(HandOver(entry.tensor, writer, reader, row))
    for writer in left:
        if side(writer, entry.tensor) is Side.CUBE and not all(
            disjoint(writer.region, r.region) for r in entry.readers
        ):
            raise Blocked("TL841", writer.copy.node, f"no copy reads exactly this tile of `{entry.tensor.name}`")
    for pair in result:
        _check(pair, kernel)
    return result, left


def _check_result(pair: HandOver, rest: Sequence[Place]) -> None:
    """A tensor that is also a result: what was handed over through it must be overwritten afterwards, in any case."""
    for later in rest:
        same = same_region(later.region, pair.writer.region) and later.order > pair.reader.order
        loops = set(later.loops) <= set(pair.reader.loops)
        if same and loops and later.branches == pair.reader.branches:
            arms = [_arm(branch, later.copy) == _arm(branch, pair.reader.copy) for branch in later.branches]
            if all(arms):
                return
    raise Blocked(
        "TL842",
        pair.writer.copy.node,
        f"`{pair.tensor.name}` is both a workspace and a result: its last tile is part of the result",
    )


def _aligned(writer: Place, reader: Place) -> Region:
    """The region read, in the writer's loop variables: separate loops that run equally often run in step."""
    shared = common_loops(writer, reader)
    mine = [item for loop in writer.loops if loop not in shared for item in loop.ranges]
    theirs = [item for loop in reader.loops if loop not in shared for item in loop.ranges]
    values = {
        str(b.var): a.var for a, b in zip(mine, theirs, strict=False) if a.extent == b.extent and a.start == b.start
    }
    return tuple((lo.substitute(values), size.substitute(values)) for lo, size in reader.region)


def _matches(writer: Place, reader: Place) -> bool:
    region = _aligned(writer, reader)
    if same_region(writer.region, region):
        return True
    row = _row_axis(writer)
    if row is None or len(writer.region) != len(region):
        return False
    axis, item = row
    for i, (mine, theirs) in enumerate(zip(writer.region, region, strict=False)):
        if i == axis:
            if theirs != (mine[0] - item.var, item.extent):
                return False
        elif mine != theirs:
            return False
    return True


def _row_axis(writer: Place) -> tuple[int, Range] | None:
    """The dimension in which a writer stores row after row, with its loop (a gather)."""
    for loop in reversed(writer.loops):
        if len(loop.ranges) != 1:
            continue
        item = loop.ranges[0]
        moved = [i for i, (lo, _) in enumerate(writer.region) if lo.depends_on(str(item.var))]
        if len(moved) == 1 and writer.region[moved[0]][1] == const(1) and item.start.is_zero:
            return moved[0], item
    return None


def _row_range(writer: Place) -> Range | None:
    found = _row_axis(writer)
    return found[1] if found else None


def _why_unmatched(entry: Traffic) -> str:
    return "TL841" if len(entry.writers) > 0 else "TL842"


def _unmatched_text(entry: Traffic, reader: Place) -> str:
    if not any(side(w, entry.tensor) is not side(reader, entry.tensor) for w in entry.writers):
        return f"`{entry.tensor.name}` is read here, but the other core never writes it"
    return f"cannot prove that this copy reads the tile of `{entry.tensor.name}` that the other core writes"


def _check(pair: HandOver, kernel: Kernel) -> None:
    """The preconditions of a fusion (R-ONE2ONE, R-WHOLE, R-REGION, R-2D, R-DTYPE, R-BRANCH)."""
    writer, reader = pair.writer, pair.reader
    node = writer.copy.node
    if (pair.src.memory, pair.dst.memory) not in ((Memory.L0C, Memory.UB), (Memory.UB, Memory.L1)):
        raise Blocked(
            "TL849",
            node,
            f"{pair.src.memory.value} -> {pair.dst.memory.value} is not a cross-core transfer that Developer mode has",
        )
    if writer.copy.via or reader.copy.via:
        raise Blocked("TL903", node, "this copy is in a macro or helper that is used elsewhere too")
    if not reader.copy.dst.is_whole:
        raise Blocked("TL841", reader.copy.node, f"the cross-core transfer fills only a part of `{pair.dst.name}`")
    if not writer.copy.src.is_whole:
        raise Blocked("TL841", node, f"the cross-core transfer sends only a part of `{pair.src.name}`")
    if pair.row is None and pair.src.shape != pair.dst.shape:
        if [s for s in pair.src.shape if s != const(1)] != [s for s in pair.dst.shape if s != const(1)]:
            raise Blocked("TL841", node, f"`{pair.src.name}` and `{pair.dst.name}` have different shapes")
        raise Blocked("TL843", node, f"`{pair.src.name}` and `{pair.dst.name}` have different ranks")
    if pair.row is not None and pair.dst.shape != (pair.row.extent, *pair.src.shape):
        raise Blocked("TL841", node, f"the gathered rows do not fill `{pair.dst.name}`")
    if pair.row is None and len(pair.dst.shape) != 2:
        raise Blocked("TL843", node, f"`{pair.dst.name}` is not a 2-D tile")
    if not pair.to_vector and pair.src.dtype != pair.dst.dtype:
        raise Blocked("TL844", node, f"`{pair.src.name}` is {pair.src.dtype}, `{pair.dst.name}` is {pair.dst.dtype}")
    if pair.tensor.dtype != pair.dst.dtype:
        raise Blocked(
            "TL844", node, f"`{pair.tensor.name}` is {pair.tensor.dtype}, `{pair.dst.name}` is {pair.dst.dtype}"
        )
    if not is_private(writer, kernel, kernel.launch.grid if kernel.launch else ()):
        raise Blocked("TL842", node, f"different blocks may use the same tile of `{pair.tensor.name}`")
    if any("pad_value" in place.copy.options for place in (writer, reader)):
        raise Blocked("TL841", node, "a copy through the workspace pads the tile")
    if writer.branches != reader.branches:
        raise Blocked("TL846", node, "the tile is written and read under different conditions")
    for parent in writer.branches:
        if _arm(parent, writer.copy) != _arm(parent, reader.copy):
            raise Blocked("TL846", node, "the tile is written and read in different branches")
    _check_loops(pair)


def _arm(branch: Branch, stmt: Stmt) -> bool:
    return any(s is stmt for s, _ in walk_with_parents(branch.then))


def _check_loops(pair: HandOver) -> None:
    shared = common_loops(pair.writer, pair.reader)
    mine = [loop for loop in pair.writer.loops if loop not in shared]
    theirs = [loop for loop in pair.reader.loops if loop not in shared]
    if pair.row is not None and mine and pair.row in mine[-1].ranges:
        mine = mine[:-1]
    counts = [[item.extent for loop in side_loops for item in loop.ranges] for side_loops in (mine, theirs)]
    if counts[0] != counts[1]:
        raise Blocked("TL868", pair.writer.copy.node, "the tile is written and read a different number of times")


def check_distinct(pairs: Sequence[HandOver]) -> list[HandOver]:
    """Hand-overs whose landing buffer serves another one too (R-ONE2ONE); shared sources cannot be repaired."""
    again: list[HandOver] = []
    sources: dict[Buffer, HandOver] = {}
    landings: dict[Buffer, HandOver] = {}
    for pair in pairs:
        if pair.src in sources and sources[pair.src].dst is not pair.dst:
            raise Blocked(
                "TL840", pair.writer.copy.node, f"`{pair.src.name}` is the source of two cross-core transfers"
            )
        sources[pair.src] = pair
        if pair.dst in landings:
            if not pair.to_vector:
                raise Blocked(
                    "TL840", pair.writer.copy.node, f"`{pair.dst.name}` is the target of two cross-core transfers"
                )
            again.append(pair)
        landings[pair.dst] = pair
    return again


def needs_anchor(kernel: Kernel, pair: HandOver) -> str | None:
    """Why the compiler would not reload the landing buffer in the right place; None if it would.

    The reload is put once, before the first call in text order that reads the buffer
    (``src/transform/ascend_workspace_reduction.cc``).
    """
    before = True
    for stmt, parents in walk_with_parents(kernel.body):
        if stmt is pair.reader.copy:
            before = False
            continue
        if stmt is pair.writer.copy:
            continue
        touching = [a for a in accesses(stmt) if a.operand.buffer is pair.dst]
        if not touching:
            continue
        is_read = any(a.reads for a in touching)
        if not before and is_read != _seen_reading(stmt, pair.dst):
            return "the compiler does not recognise its first reader"
        if before:
            if is_read:
                return "it is read earlier in the text"
            continue
        if not is_read:
            return "it is overwritten before it is read"
        return _bad_first_reader(stmt, parents, pair)
    return None


def _seen_reading(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether the compiler's passes take an operator for a reader: the access mask, not what it does, decides."""
    if not isinstance(stmt, Op):
        return any(a.reads and a.operand.buffer is buffer for a in accesses(stmt))
    masks = [param.mask for name, o in stmt.operands if o.buffer is buffer and (param := stmt.op.param(name))]
    return any("r" in mask for mask in masks)


def _bad_first_reader(stmt: Stmt, parents: tuple[Stmt, ...], pair: HandOver) -> str | None:
    inside = [p for p in parents if p not in pair.reader.parents]
    loops = [p for p in inside if isinstance(p, Loop)]
    if any(isinstance(p, Branch) for p in inside):
        return "its first reader is under a condition"
    if len(inside) != len(loops) or any(loop.kind != "parallel" for loop in loops):
        return "its first reader is in an inner loop"
    if isinstance(stmt, Store):
        if not loops:
            return "its first reader reads single elements"
        in_place = stmt.target.buffer is pair.dst
        rank = len(pair.dst.shape)
        partners = [o for o in stmt.value.loads if o.buffer is not pair.dst and len(o.buffer.shape) < rank]
        return "its first reader updates it in place with a row vector" if in_place and partners else None
    if isinstance(stmt, (Op, Copy)):
        access = next(a for a in accesses(stmt) if a.operand.buffer is pair.dst and a.reads)
        if access.element or not access.operand.is_whole:
            return "its first reader does not read the whole tile"
        accumulating = isinstance(stmt, Op) and any(
            a.reads and a.writes and a.operand.buffer is pair.dst for a in accesses(stmt)
        )
        if accumulating:
            return "its first reader accumulates into it"
        return None
    return "its first reader is not a tile operation"


def _check_cube_reader(kernel: Kernel, pair: HandOver) -> None:
    """An L1 landing buffer has no anchor: its first reader must be a gemm that runs as often as the old reader."""
    for stmt, parents in walk_with_parents(kernel.body):
        if isinstance(stmt, Copy) and stmt.dst.buffer is pair.dst and stmt is not pair.reader.copy:
            raise Blocked("TL840", stmt.node, f"another copy also fills `{pair.dst.name}`")
        if isinstance(stmt, Op) and any(o.buffer is pair.dst for _, o in stmt.operands):
            if stmt.op.kind is not Kind.GEMM:
                continue
            inside = [p for p in parents if p not in pair.reader.parents]
            if inside:
                raise Blocked(
                    "TL846" if any(isinstance(p, Branch) for p in inside) else "TL845",
                    stmt.node,
                    f"the gemm that reads `{pair.dst.name}` does not run once for each tile that arrives",
                )
            return
    raise Blocked("TL845", pair.reader.copy.node, f"no gemm reads `{pair.dst.name}`")


def hoist_landings(job: Job) -> None:
    """A fused copy names its landing buffer where the writer stands: allocate it before that."""
    try:
        pairs, _ = find(job.kernel, _outputs(job))
    except Blocked:
        return  # the fusion itself will say why
    order = {id(stmt): i for i, stmt in enumerate(job.kernel.walk())}
    place = {s.buffer: i for i, s in enumerate(job.kernel.walk()) if isinstance(s, Alloc)}
    late = [pair for pair in pairs if place.get(pair.dst, -1) > order[id(pair.writer.copy)]]
    if not late:
        return
    first = min(late, key=lambda pair: order[id(pair.writer.copy)]).writer
    anchor = first.parents[0].node if first.parents else job.file.index.parent(first.copy.node)
    lets = {stmt.name for stmt in job.kernel.walk() if isinstance(stmt, Let)}
    edits = Edits(job.file.index)
    moved: list[cst.CSTNode] = []
    for pair in late:
        statement = pair.dst.statement
        if statement is None or anchor is None or any(n.value in lets for n in names_in(pair.dst.node)):
            raise Blocked("TL845", pair.writer.copy.node, f"`{pair.dst.name}` is allocated after the tile is produced")
        moved.append(statement)
        edits.remove(statement)
    assert anchor is not None
    edits.replace_many(anchor, [*moved, anchor])
    job.apply(edits)


def fuse(job: Job) -> Fused:
    """Fuse every hand-over of the kernel; raises :class:`Blocked` and changes nothing if one cannot be fused."""
    kernel = job.kernel
    for stmt in kernel.walk():
        if isinstance(stmt, Opaque) and stmt.buffers:
            raise Blocked("TL902", stmt.node, stmt.why)
    pairs, emptied = find(kernel, _outputs(job))
    shared = check_distinct(pairs)
    edits = Edits(job.file.index)
    names = mentioned(job.module)
    twins: Twins = {}
    for pair in pairs:
        why = None
        if not pair.to_vector:
            _check_cube_reader(kernel, pair)
        elif pair in shared:
            why = SHARED
        else:
            why = needs_anchor(kernel, pair)
        _write(job, edits, pair, why, names, twins)
    for statement, fresh in twins.values():
        edits.replace_many(statement, [statement, *fresh])
    job.apply(edits)
    return Fused(tuple(emptied), len(pairs))


Twins = dict[int, tuple[cst.CSTNode, list[cst.CSTNode]]]
"""Allocations by id, each with the fresh landing buffers to allocate behind it."""


def _write(job: Job, edits: Edits, pair: HandOver, why: str | None, names: set[str], twins: Twins) -> None:
    writer, reader = pair.writer.copy, pair.reader.copy
    landing = pair.dst.name
    rule = "TL210" if pair.tensor.index not in _outputs(job) else "TL215"
    if why is not None:
        landing = _fresh(pair.dst.name + "_landing", names)
        statement = pair.dst.statement
        assert statement is not None
        twin = cst.parse_statement(f"{landing} = {code(pair.dst.node)}")
        job.split.add(landing)
        twins.setdefault(id(statement), (statement, []))[1].append(twin)
        edits.replace(reader.src.node, cst.Name(landing))
        anchor = "TL219" if why == SHARED else "TL216"
        job.change(anchor, reader.node, f"the tile is copied to `{landing}`, not to `{pair.dst.name}`: {why}")
    else:
        edits.remove(reader.node)
        job.change(rule, reader.node, f"removed the read of `{pair.tensor.name}`; `{landing}` is filled on chip")
    target: cst.BaseExpression = cst.Name(landing)
    if pair.row is not None:
        target = cst.parse_expression(f"{landing}[{pair.row.name}, :]")
    edits.replace(writer.dst.node, target)
    job.change(rule, writer.node, f"`{pair.src.name}` -> `{pair.tensor.name}` -> `{landing}` is now one on-chip copy")


def _outputs(job: Job) -> set[int]:
    return output_positions(job.file, job.located)


def _fresh(name: str, taken: set[str]) -> str:
    candidate, count = name, 2
    while candidate in taken:
        candidate, count = f"{name}{count}", count + 1
    taken.add(candidate)
    return candidate
