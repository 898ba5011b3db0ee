"""Hand-overs between the cube core and the vector cores as the compiler sees them.

An on-chip copy (L0C to UB, UB to L1) becomes a store to a workspace where it stands and a load that is inserted once,
before the first call in text order that reads the destination (``src/transform/ascend_workspace_reduction.cc``). A kept
workspace has its own copies, paired by their order on each core (``src/transform/ascend_combinecv.cc``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tl2npu.checks.operators.vector_form import ParallelStore, parallel_store
from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.access import accesses, is_on_chip
from tl2npu.kernel.handover import Traffic, region, traffic
from tl2npu.kernel.model import CUBE_MEMORY, Buffer, Copy, Kernel, Memory, Op, Opaque, Operand, Range, Store
from tl2npu.kernel.symbolic import const

WORKSPACE = "workspace"


@dataclass(frozen=True, eq=False)
class Touch:
    """A statement that touches the destination of an on-chip copy, in the compiler's eyes.

    ``sees``: the statement is a call that reads the buffer, so that the inserted load may stand before it.
    ``hidden``: it reads elements, or passes the tile on to the other core, without being such a call. ``writes``: it
    changes the buffer. ``accumulates``: it reads the buffer although the compiler takes it for a pure write.
    """

    placed: Placed
    sees: bool = False
    hidden: bool = False
    writes: bool = False
    accumulates: bool = False
    parallel: ParallelStore | None = None


@dataclass(eq=False)
class OnChip:
    """One on-chip copy. ``row`` is the loop of a row-wise copy to L1; ``touches`` are those of the destination."""

    placed: Placed
    copy: Copy
    row: Range | None
    touches: list[Touch] = field(default_factory=list)

    @property
    def src(self) -> Buffer:
        """The buffer on the producing core."""
        return self.copy.src.buffer

    @property
    def dst(self) -> Buffer:
        """The buffer on the consuming core."""
        return self.copy.dst.buffer

    @property
    def to_vector(self) -> bool:
        """True for cube to vector (L0C to UB), False for vector to cube (UB to L1)."""
        return self.src.memory is Memory.L0C

    @property
    def reader(self) -> Touch | None:
        """The first call in text order that reads the destination: where the load is inserted."""
        return next((touch for touch in self.touches if touch.sees), None)


@dataclass(frozen=True, eq=False)
class Channel:
    """A hand-over with its two ends; in a kept workspace ``writes_to`` and ``reads_from`` name the place."""

    name: str
    writer: Placed
    reader: Placed
    to_vector: bool
    row: Range | None = None
    writes_to: Operand | None = None
    reads_from: Operand | None = None


def on_chip(subject: Subject) -> list[OnChip]:
    """Every on-chip copy in text order."""
    return list(_on_chip(subject))


@lru_cache(maxsize=2)
def _on_chip(subject: Subject) -> tuple[OnChip, ...]:
    """Remembered, as most checks ask."""
    found: list[OnChip] = []
    users: dict[Buffer, list[Placed]] | None = None
    for placed in subject.statements:
        if isinstance(placed.stmt, Copy) and is_on_chip(placed.stmt):
            dims = placed.stmt.dst.dims
            row = placed.range_of(dims[0].lo) if dims and dims[0].is_point else None
            item = OnChip(placed, placed.stmt, row)
            users = _users(subject) if users is None else users
            item.touches = list(_touches(subject, users[item.dst], item.dst, placed.stmt))
            found.append(item)
    return tuple(found)


def _users(subject: Subject) -> dict[Buffer, list[Placed]]:
    """The statements that name a buffer, in text order."""
    found: dict[Buffer, list[Placed]] = {}
    for placed in subject.statements:
        parallel = parallel_store(subject, placed)
        loads = parallel.value.loads if parallel else ()
        for buffer in {*(access.operand.buffer for access in accesses(placed.stmt)), *(load.buffer for load in loads)}:
            found.setdefault(buffer, []).append(placed)
    return found


def _touches(subject: Subject, users: Sequence[Placed], buffer: Buffer, writer: Copy) -> Iterator[Touch]:
    for placed in users:
        stmt = placed.stmt
        if stmt is writer:
            continue
        if isinstance(stmt, Copy):
            if buffer in (stmt.src.buffer, stmt.dst.buffer) and not is_element(stmt.src):
                # another on-chip copy to the buffer stores to a workspace, not to the buffer
                writes = stmt.dst.buffer is buffer and not is_on_chip(stmt)
                # one from it has become a store to a workspace before loads are inserted, and counts for no reader
                reads, passed_on = stmt.src.buffer is buffer, is_on_chip(stmt)
                yield Touch(placed, sees=reads and not passed_on, hidden=reads and passed_on, writes=writes)
                continue
        elif isinstance(stmt, Op):
            touch = _op_touch(placed, stmt, buffer)
            if touch is not None:
                yield touch
                continue
        elif isinstance(stmt, Store):
            touch = _store_touch(subject, placed, stmt, buffer)
            if touch is not None:
                yield touch
                continue
        found = [a for a in accesses(stmt) if a.operand.buffer is buffer]
        if found:
            whole = isinstance(stmt, Opaque)
            yield Touch(placed, sees=whole, hidden=not whole, writes=any(a.writes for a in found))


def _op_touch(placed: Placed, stmt: Op, buffer: Buffer) -> Touch | None:
    mine = [(name, o) for name, o in stmt.operands if o.buffer is buffer and not is_element(o)]
    if not mine:
        return None
    params = [stmt.op.param(name) for name, _ in mine]
    found = [a for a in accesses(stmt) if a.operand.buffer is buffer]
    sees = any("r" in param.mask for param in params if param is not None)
    reads, writes = any(a.reads for a in found), any(a.writes for a in found)
    return Touch(placed, sees=sees, writes=writes, accumulates=reads and not sees)


def _store_touch(subject: Subject, placed: Placed, stmt: Store, buffer: Buffer) -> Touch | None:
    parallel = parallel_store(subject, placed)
    loads = parallel.value.loads if parallel else stmt.value.loads
    reads = any(load.buffer is buffer for load in loads) or (stmt.augmented and stmt.target.buffer is buffer)
    writes = stmt.target.buffer is buffer
    if not reads and not writes:
        return None
    vector = parallel is not None and parallel.form != "scalar"
    return Touch(placed, sees=reads and vector, hidden=reads and not vector, writes=writes, parallel=parallel)


# kept workspaces -----------------------------------------------------------------------------------------------------


def copy_side(copy: Copy, tensor: Buffer) -> str:
    """The core (``C`` or ``V``) at the on-chip end of a copy with a global tensor."""
    inner = copy.src.buffer if copy.dst.buffer is tensor else copy.dst.buffer
    return "C" if inner.memory in CUBE_MEMORY else "V"


def kept(kernel: Kernel) -> list[Traffic]:
    """The tensors through which the two cores exchange data in the kernel."""
    found = []
    for entry in traffic(kernel).values():
        sides = {copy_side(place.copy, entry.tensor) for place in (*entry.writers, *entry.readers)}
        wrote = {copy_side(place.copy, entry.tensor) for place in entry.writers}
        read = {copy_side(place.copy, entry.tensor) for place in entry.readers}
        if len(sides) > 1 and entry.writers and entry.readers and read - (wrote if len(wrote) == 1 else set()):
            found.append(entry)
    return found


def sync_points(subject: Subject, tensor: Buffer) -> dict[str, list[Placed]]:
    """The copies that touch a tensor, in the program order of each core."""
    result: dict[str, list[Placed]] = {"C": [], "V": []}
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Copy) and tensor in (stmt.src.buffer, stmt.dst.buffer):
            result[copy_side(stmt, tensor)].append(placed)
    return result


def channels(subject: Subject) -> list[Channel]:
    """Every hand-over with both ends, in text order of the writers; ends that do not match are left out."""
    found: list[Channel] = []
    for item in on_chip(subject):
        if item.reader is not None:
            name = f"{item.src.name} -> {item.dst.name}"
            found.append(Channel(name, item.placed, item.reader.placed, item.to_vector, item.row))
    for entry in kept(subject.kernel):
        points = sync_points(subject, entry.tensor)
        for cube, vector in zip(points["C"], points["V"], strict=False):
            channel = kept_channel(entry.tensor, cube, vector)
            if channel is not None:
                found.append(channel)
    return sorted(found, key=lambda channel: channel.writer.order)


def kept_channel(tensor: Buffer, cube: Placed, vector: Placed) -> Channel | None:
    """The hand-over of two paired copies; None if both go in the same direction."""
    assert isinstance(cube.stmt, Copy)
    assert isinstance(vector.stmt, Copy)
    if (cube.stmt.dst.buffer is tensor) == (vector.stmt.dst.buffer is tensor):
        return None
    to_vector = cube.stmt.dst.buffer is tensor
    writer, reader = (cube, vector) if to_vector else (vector, cube)
    assert isinstance(writer.stmt, Copy)
    assert isinstance(reader.stmt, Copy)
    target, source = writer.stmt.dst, reader.stmt.src
    return Channel(tensor.name, writer, reader, to_vector, _row_loop(writer, target), target, source)


def _row_loop(writer: Placed, target: Operand) -> Range | None:
    """The loop of a writer that fills its tile row by row: one row of the region per iteration."""
    assert isinstance(writer.stmt, Copy)
    rows = [lo for lo, extent in region(target, writer.stmt.src)[1:] if extent == const(1)]
    for item in reversed(writer.ranges):
        if any(lo.depends_on(str(item.var)) for lo in rows):
            return item
    return None
