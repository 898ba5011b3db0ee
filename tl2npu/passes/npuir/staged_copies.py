"""TL414, TL454: copies that go through a tile of their own.

TL414: the compiler has no copy from one tensor in global memory to another. TL454: a copy that converts into a part of
a tile converts first: the compiler puts such a part into an empty tile and converts that, so that the rest of the tile
is lost (``InsertSliceWithCast`` of ``src/target/codegen_npuir_dev.cc``). TL455: a GPU cuts off floats that become
integers; a copy here would round them.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Dim, Memory, Operand
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type, number_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse, shape_text
from tl2npu.passes.writing.tiles import dtype_text
from tl2npu.passes.writing.tiles import shape_text as shape_of

_CUT = ["float", "int"]


def stage(job: Job) -> None:
    """Load into a tile and store it; raises :class:`Blocked` where the extents of the copy cannot be told."""
    plan, names = Plan(job), Names(job)
    launch = job.kernel.launched
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or any(side.buffer.memory is not Memory.GM for side in (stmt.src, stmt.dst)):
            continue
        sizes, target = _extents(job, stmt.src) or _extents(job, stmt.dst), stmt.dst.buffer
        if sizes is None or stmt.via:
            raise Blocked("TL414", stmt.node, "cannot tell the size of this copy between two global tensors")
        name = names.fresh(f"{target.name}_shared", f"{target.name.lower()}_tile")
        first = launch.node.body.body[0]
        node = first.body[0] if hasattr(first, "body") and isinstance(first.body, (list, tuple)) else first
        made = f"{name} = T.alloc_shared({shape_text(job.kernel, sizes)}, {dtype_text(stmt.src.buffer)})\n"
        plan.before(node, parse(job, made, stmt.node))
        _through(job, plan, stmt, name)
        job.change("TL414", stmt.node, f"wrote the copy to `{target.name}` through a tile")
    plan.apply()


def convert_first(job: Job) -> None:
    """Give every copy that converts into a part of a tile another tile in the type of its target."""
    plan, names = Plan(job), Names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or stmt.dst.buffer.memory is Memory.GM or stmt.dst.is_whole:
            continue
        source, target = stmt.src.buffer, stmt.dst.buffer
        if element_type(job, source) == element_type(job, target):
            continue
        near, sizes = target.statement, _extents(job, stmt.src) or _extents(job, stmt.dst)
        if stmt.via or near is None or not (stmt.src.is_whole or sizes):
            text = f"this converting copy into a part of `{target.name}` would lose the rest of it"
            raise Blocked("TL454", stmt.node, text)
        shape = shape_of(source) if stmt.src.is_whole else shape_text(job.kernel, sizes or [])
        name = names.fresh(f"{source.name}_cast")
        plan.after(near, parse(job, f"{name} = T.alloc_shared({shape}, {dtype_text(target)})\n", near))
        _through(job, plan, stmt, name)
        job.change("TL454", stmt.node, f"converted `{source.name}` before the copy into a part of `{target.name}`")
    plan.apply()


def cut_off(job: Job) -> None:
    """Convert floats to integers between two tiles, by an operator that can cut off."""
    plan, names = Plan(job), Names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or [number_type(job, b) for b in (stmt.src.buffer, stmt.dst.buffer)] != _CUT:
            continue
        found = [extents for side in (stmt.src, stmt.dst) if (extents := _extents(job, side))]
        sizes = max(found, key=len, default=None)
        whole = next((side.buffer for side in (stmt.src, stmt.dst) if side.is_whole and side.buffer.is_tile), None)
        near = next((b.statement for b in (stmt.dst.buffer, stmt.src.buffer) if b.statement is not None), None)
        if stmt.via or near is None or not (whole or sizes) or len({len(extents) for extents in found}) > 1:
            raise Blocked("TL454", stmt.node, "the copy would round floats, which a GPU cuts off, to integers")
        shape = shape_of(whole) if whole is not None else shape_text(job.kernel, sizes or [])
        lines, tiles = [], []
        for side in (stmt.src, stmt.dst):
            own = side.is_whole and side.buffer.is_tile
            tiles.append(side.buffer.name if own else names.fresh(f"{side.buffer.name}_part"))
            if not own:
                made = f"{tiles[-1]} = T.alloc_shared({shape}, {dtype_text(side.buffer)})\n"
                plan.after(near, parse(job, made, near))
        if tiles[0] != stmt.src.buffer.name:
            lines.append(f"T.copy({code(stmt.src.node)}, {tiles[0]})")
        lines.append(f'T.vcast({tiles[0]}, {tiles[1]}, round_mode="trunc")')
        if tiles[1] != stmt.dst.buffer.name:
            lines.append(f"T.copy({tiles[1]}, {code(stmt.dst.node)})")
        plan.replace(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
        job.change(
            "TL455", stmt.node, f"wrote the conversion to integers of `{stmt.dst.buffer.name}` so that it cuts off"
        )
    plan.apply()


def _through(job: Job, plan: Plan, stmt: Copy, tile: str) -> None:
    lines = f"T.copy({code(stmt.src.node)}, {tile})\nT.copy({tile}, {code(stmt.dst.node)})\n"
    plan.replace(stmt.node, parse(job, lines, stmt.node))


# How many elements a slice of a tensor takes, as text that can stand in a shape.


def _extents(job: Job, operand: Operand) -> list[str] | None:
    """The extents of the sliced axes; None if there is none, or one is not known when the kernel is compiled."""
    found: list[str] = []
    for dim, size in zip(operand.dims or (), operand.buffer.shape, strict=False):
        if dim.is_point:
            continue
        text = _extent(job, dim, str(size))
        if text is None:
            return None
        found.append(text)
    return found or None


def _extent(job: Job, dim: Dim, size: str) -> str | None:
    assert isinstance(dim.node, cst.Slice)
    if dim.extent is None or job.late.is_late(dim.extent):
        return None
    if dim.extent.constant is not None:
        return str(dim.extent.constant)
    lower, upper = dim.node.lower, dim.node.upper
    if lower is None and upper is None:
        return size
    wanted = dim.extent
    for part in (lower, upper):
        for node in _candidates(part):
            if job.file.evaluator.sym(node, job.located.env) == wanted:
                return code(node)
    return str(wanted) if str(wanted).isidentifier() else None


def _candidates(node: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """The parts of a bound, any of which may be the extent."""
    if isinstance(node, cst.BinaryOperation):
        return [node, *_candidates(node.left), *_candidates(node.right)]
    return [] if node is None else [node]
