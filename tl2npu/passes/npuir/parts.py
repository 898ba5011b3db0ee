"""TL454: a copy that converts into a part of a tile converts first, and then copies.

The compiler puts such a part into an empty tile and converts that, so that the rest of the tile is lost
(``InsertSliceWithCast`` of ``src/target/codegen_npuir_dev.cc``).
"""

from __future__ import annotations

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.extents import extents
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, parse, shape_text
from tl2npu.passes.writing.tiles import dtype_text
from tl2npu.passes.writing.tiles import shape_text as shape_of


def convert_first(job: Job) -> None:
    """Give every such copy a tile in the type of its target."""
    plan, names = Plan(job), Names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or stmt.dst.buffer.memory is Memory.GM or stmt.dst.is_whole:
            continue
        source, target = stmt.src.buffer, stmt.dst.buffer
        if element_type(job, source) == element_type(job, target):
            continue
        near = target.statement
        sizes = extents(job, stmt.src) or extents(job, stmt.dst)
        if stmt.via or near is None or not (stmt.src.is_whole or sizes):
            raise Blocked(
                "TL454", stmt.node, f"this converting copy into a part of `{target.name}` would lose the rest of it"
            )
        shape = shape_of(source) if stmt.src.is_whole else shape_text(job.kernel, sizes or [])
        name = names.fresh(f"{source.name}_cast")
        plan.after(near, parse(job, f"{name} = T.alloc_shared({shape}, {dtype_text(target)})\n", near))
        lines = f"T.copy({code(stmt.src.node)}, {name})\nT.copy({name}, {code(stmt.dst.node)})\n"
        plan.replace(stmt.node, parse(job, lines, stmt.node))
        job.change("TL454", stmt.node, f"converted `{source.name}` before the copy into a part of `{target.name}`")
    plan.apply()
