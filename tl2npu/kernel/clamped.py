"""Where the compiler cuts a copy, and of which type an index there must be (TL748).

``src/op/ascend.cc`` (``compute_valid_extent``) takes ``Select(remaining >= extent, extent, Select(remaining > 0,
remaining, 0))`` of the last two axes that are longer than 1. ``remaining`` is the extent of the buffer less the start;
if one of the two is an int64, the arms of the choice have two types: "TypeError: mismatched types".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.handover import region
from tl2npu.kernel.model import Copy, Kernel, Op, Operand, Stmt, walk
from tl2npu.kernel.parser.scopes import Found
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.source.tree import walk as parts

CLAMPED = 2
"""So many axes are cut."""


def clamped_axes(extents: Sequence[Sym]) -> frozenset[int]:
    """The axes in which a region is cut at the end of its tensor: the last two that are longer than 1."""
    rank = len(extents)
    active = [n for n, extent in enumerate(extents) if extent != const(1)]
    if not active or active[-1] != rank - 1:
        active.append(rank - 1)
    if len(active) == 1 and rank > 1:
        active.insert(0, rank - 2)
    return frozenset(active[-CLAMPED:])


def wide_indices(kernel: Kernel, told: Iterable[Found]) -> Iterator[tuple[Stmt, Found]]:
    """What makes an index or an extent an int64 where a copy is cut, with that copy; ``told`` by the parser."""
    wide = {id(found.node): found for found in told if found.what == "wide"}
    for stmt in walk(kernel.body) if wide else ():
        for operand, other in _sides(stmt):
            extents = [extent for _, extent in region(operand, other)]
            for axis in sorted(clamped_axes(extents)):
                start = [operand.dims[axis].node] if operand.dims is not None else []
                size = operand.buffer.shape_nodes[axis : axis + 1]
                for node in (part for whole in (*start, *size) for part in parts(whole)):
                    if id(node) in wide:
                        yield stmt, wide[id(node)]


def _sides(stmt: Stmt) -> list[tuple[Operand, Operand]]:
    """The two sides of a transfer, each with the other."""
    if isinstance(stmt, Copy):
        return [(stmt.src, stmt.dst), (stmt.dst, stmt.src)]
    if isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
        given = dict(stmt.operands)
        if "src" in given and "dst" in given:
            return [(given["dst"], given["src"]), (given["src"], given["dst"])]
    return []
