"""TL172, TL173: ``T.atomic_add`` becomes ``T.tile.atomic_add``, which the compiler does not drop."""

from __future__ import annotations

import itertools

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses_of
from tl2npu.kernel.atomics import refuse_atomic, sized
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Buffer, Copy, Loop, Op, Operand, Stmt, children, walk, walk_with_parents
from tl2npu.passes.gpu.element_copies.loops import LoopWork
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import Tiles, dtype_text, extent_text
from tl2npu.source.edits import Edits


def to_tile(job: Job) -> None:
    """Element loops and tiles of atomic additions."""

    def step() -> bool:
        found = _loop(job)
        if found is not None and not LoopWork(job, *found).carry_out():
            raise Blocked("TL173", found[0].node, "these elements cannot be added as one tile")
        return found is not None

    def tile() -> bool:
        found = next((stmt for stmt in job.kernel.walk() if isinstance(stmt, Op) and _is_gpu_atomic(stmt)), None)
        if found is not None:
            _tile(job, found)
        return found is not None

    until_settled(job, step)
    until_settled(job, tile)
    _skip_staging(job)


def _is_gpu_atomic(stmt: Stmt) -> bool:
    return isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC and not stmt.op.name.startswith("tile.")


def _loop(job: Job) -> tuple[Loop, tuple[Stmt, ...]] | None:
    """The first outermost ``T.Parallel`` with an atomic addition of elements."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if isinstance(stmt, Loop) and stmt.kind == "parallel" and any(_is_gpu_atomic(s) for s in walk(stmt.body)):
            return stmt, parents
    return None


def _tile(job: Job, stmt: Op) -> None:
    """``T.atomic_add(C[start], tile)``."""
    refuse_atomic(stmt)
    target, value = stmt.args["dst"], stmt.args["value"]
    assert isinstance(target, Operand)
    elements = isinstance(value, Operand) and value.is_indexed
    if not isinstance(value, Operand) or elements or not value.buffer.is_tile:
        raise Blocked("TL173", stmt.node, "this adds a single number; the NPU adds tiles")
    edits = Edits(job.file.index)
    source = code(value.node)
    lines: list[str] = []
    tiles = Tiles(job, Names(job))
    if element_type(job, value.buffer) != element_type(job, target.buffer):
        if not value.is_whole:
            raise Blocked("TL173", stmt.node, f"`{source}` and `{target.buffer.name}` have different element types")
        name = tiles.like(value.buffer, f"{value.buffer.name}_cast", dtype=dtype_text(target.buffer))
        lines.append(f"T.copy({source}, {name})")
        source = name
    unit_axes = len(value.buffer.shape) - len(target.buffer.shape)
    text = sized(value)
    if text is None:
        source = _part(job, stmt, value, tiles, lines)
    elif not value.is_whole:
        source = text
    elif unit_axes > 0:  # a start index needs an axis for each of the tile (ascend_tile.py:_atomic_add_to_tile_region)
        if not value.is_whole or any(extent.constant != 1 for extent in value.buffer.shape[:unit_axes]):
            raise Blocked("TL173", stmt.node, f"`{source}` has more axes than `{target.buffer.name}`")
        name = tiles.flat(value.buffer, unit_axes, f"{value.buffer.name}_flat", dtype=dtype_text(target.buffer))
        lines.append(f"T.copy({source}[{', '.join(['0'] * len(value.buffer.shape))}], {name})")
        source = name
    lines.append(f"T.tile.atomic_add({code(target.node)}, {source})")
    edits.replace_many(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
    tiles.commit(edits)
    job.change("TL172", stmt.node, f"`{source}` is added to `{target.buffer.name}` by `T.tile.atomic_add`")
    job.apply(edits)


def _part(job: Job, stmt: Op, value: Operand, tiles: Tiles, lines: list[str]) -> str:
    """A tile of its own for a part of a tile, which ``T.tile.atomic_add`` does not take."""
    extents: list[str] = []
    for axis, dim in enumerate(value.dims or ()):
        if dim.is_point or dim.extent is None:
            continue
        if dim.extent == value.buffer.shape[axis]:
            extents.append(extent_text(value.buffer, axis))
        elif dim.extent.constant is not None:
            extents.append(str(dim.extent.constant))
        else:
            text = f"`{code(value.node)}` is a part of a tile, and its size is not a constant"
            raise Blocked("TL173", stmt.node, text)
    name = tiles.names.fresh(f"{value.buffer.name}_part")
    tiles.add(value.buffer, f"{name} = T.alloc_shared([{', '.join(extents)}], {dtype_text(value.buffer)})")
    lines.append(f"T.copy({code(value.node)}, {name})")
    return name


def _skip_staging(job: Job) -> None:
    """Add a product itself where a tile does nothing but hold a copy of it."""
    kernel = job.kernel
    plan = Plan(job)
    for stmt in kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name != "tile.atomic_add":
            continue
        target, staged = stmt.args["dst"], stmt.args["src"]
        if not isinstance(staged, Operand) or not staged.is_whole or not isinstance(target, Operand):
            continue
        users = list(dict.fromkeys(stmt for stmt, _ in accesses_of(kernel, staged.buffer)))
        copies = [s for s in users if isinstance(s, Copy)]
        if len(users) != 2 or len(copies) != 1 or not copies[0].dst.is_whole or not copies[0].src.is_whole:
            continue
        source = copies[0].src.buffer
        same = element_type(job, source) == element_type(job, target.buffer) and source.shape == staged.buffer.shape
        if not same or not _is_product(job, source) or not _adjacent(kernel.body, copies[0], stmt):
            continue
        plan.remove(copies[0].node)
        text = f"T.tile.atomic_add({code(target.node)}, {source.name})"
        plan.replace(stmt.node, parse(job, text + "\n", stmt.node))
        allocation = staged.buffer.statement
        if allocation is not None and sum(isinstance(s, Alloc) and s.node is allocation for s in kernel.walk()) == 1:
            plan.remove(allocation)
        job.change("TL172", stmt.node, f"added the product `{source.name}` directly from L0C")
    plan.apply()


def _is_product(job: Job, buffer: Buffer) -> bool:
    for stmt in job.kernel.walk():
        if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM:
            target = stmt.args.get("C")
            if isinstance(target, Operand) and target.buffer is buffer:
                return True
    return False


def _adjacent(body: list[Stmt], first: Stmt, second: Stmt) -> bool:
    """Both stand in one block, the second right behind the first."""
    for one, two in itertools.pairwise(body):
        if one is first and two is second:
            return True
    return any(_adjacent(inner, first, second) for stmt in body for inner in children(stmt))
