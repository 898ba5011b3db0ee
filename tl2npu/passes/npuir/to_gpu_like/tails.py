"""TL447: copies that are cut off at the border of a tensor by hand: ``A[r : r + T.min(block, M - r), :]``.

Ascend C cuts a copy off at the border itself, so that the whole tile is copied. A load then fills the rest of the tile
with zeros, where the kernel left it as it was: only a tile whose rest nobody gave a value may be loaded so.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Dim, Kernel, Memory, Op, Operand, Scalar, Store
from tl2npu.kernel.symbolic import Sym, opaque
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.to_gpu_like.regions import base
from tl2npu.passes.writing.tiles import extent_text
from tl2npu.source.edits import Edits


def to_whole_tiles(job: Job) -> None:
    """Copy whole tiles where the border cuts off what is too much."""
    edits = Edits(job.file.index)
    kernel = job.kernel
    tails = {id(stmt): found for stmt in kernel.walk() if isinstance(stmt, Copy) and (found := _tail(stmt))}
    for stmt in kernel.walk():
        if id(stmt) not in tails or not isinstance(stmt, Copy):
            continue
        outer, inner, text = tails[id(stmt)]
        if inner is stmt.dst and not _rest_is_open(kernel, inner.buffer, tails):
            continue
        edits.replace(outer.node, cst.parse_expression(text))
        if inner.dims is not None:
            edits.replace(inner.node, cst.parse_expression(base(inner)))
        job.change("TL447", stmt.node, "removed the tail size: the copy is clamped at the end of the tensor")
    job.apply(edits)


def _tail(stmt: Copy) -> tuple[Operand, Operand, str] | None:
    """The side in global memory, the tile, and the new text of the former."""
    sides = ((stmt.src, stmt.dst), (stmt.dst, stmt.src))
    pair = next(((o, i) for o, i in sides if o.buffer.memory is Memory.GM and i.buffer.memory is not Memory.GM), None)
    if pair is None or stmt.options:
        return None
    outer, inner = pair
    if outer.dims is None or len(outer.dims) != len(outer.buffer.shape):
        return None
    spans = [axis for axis, dim in enumerate(outer.dims) if not dim.is_point]
    wide = range(len(inner.buffer.shape))
    if inner.dims is not None and any(dim.is_point for dim in inner.dims):
        return None
    if len(spans) != len(wide) or (inner.dims is not None and len(inner.dims) != len(wide)):
        return None
    texts = [code(dim.node) for dim in outer.dims]
    cut = False
    for axis, own in zip(spans, wide, strict=True):
        dim, size = outer.dims[axis], inner.buffer.shape[own]
        part = inner.dims[own] if inner.dims is not None else None
        if dim.extent == size and (part is None or (part.lo.is_zero and part.extent == size)):
            continue
        if not _is_cut(dim, size, outer.buffer.shape[axis]) or not _is_first(part, dim):
            return None
        start = _start(dim)
        if start is None:
            return None
        block = extent_text(inner.buffer, own)
        texts[axis] = f"{start} : {start} + {block}" if start != "0" else f"0:{block}"
        cut = True
    return (outer, inner, f"{base(outer)}[{', '.join(texts)}]") if cut else None


def _is_cut(dim: Dim, block: Sym, size: Sym) -> bool:
    """The extent is what is left up to the border, at most a block."""
    left = size - dim.lo
    return dim.extent == opaque("min", *sorted({block, left}, key=str))


def _is_first(part: Dim | None, dim: Dim) -> bool:
    return part is None or (part.lo.is_zero and part.extent == dim.extent)


def _start(dim: Dim) -> str | None:
    if not isinstance(dim.node, cst.Slice) or dim.node.step is not None:
        return None
    return "0" if dim.node.lower is None else code(dim.node.lower)


def _rest_is_open(kernel: Kernel, buffer: Buffer, tails: dict[int, tuple[Operand, Operand, str]]) -> bool:
    """Nothing but zeros and what was computed in place may stand behind the end of what is loaded."""
    for stmt in kernel.walk():
        writes = [a for a in accesses(stmt) if a.operand.buffer is buffer and a.writes]
        if not writes or id(stmt) in tails:
            continue
        if isinstance(stmt, Store):
            if not any(load.buffer is buffer for load in stmt.value.loads) and not stmt.augmented:
                return False
        elif isinstance(stmt, Op):
            if stmt.op.kind is Kind.FILL:
                value = stmt.args.get("value", stmt.args.get("src"))
                if value is not None and not (isinstance(value, Scalar) and value.sym.is_zero):
                    return False
            elif not any(a.operand.buffer is buffer and a.reads for a in accesses(stmt)):
                return False
        else:
            return False
    return True
