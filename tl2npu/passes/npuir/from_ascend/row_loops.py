"""Loops over the rows of whole tiles, which say one operation on whole tiles (TL424).

``for h in range(M): T.tile.sub(x[h, :], y[h, :], m[h])`` is ``x = y - m`` with one value of ``m`` for every row. Every
statement touches row ``h`` only, so the loop can be taken apart, one operation after the other.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from tl2npu.kernel.access import accesses, scalars
from tl2npu.kernel.model import Buffer, Copy, Kernel, Loop, Op, Operand
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.npuir.from_ascend.counterparts import BY_ELEMENT


class Part(enum.Enum):
    """What an operand is in a loop over rows."""

    ROW = "the row of the run"
    ELEMENT = "one value for every row"
    ALONG = "the same values in every row"


@dataclass(eq=False)
class RowLoop:
    """A loop over rows; ``parts``: what each operand is."""

    loop: Loop
    parts: dict[int, Part] = field(default_factory=dict)

    def of(self, part: Part) -> set[Buffer]:
        """The tiles that take a part."""
        return {o.buffer for s in self.loop.body for o in operands(s) if self.parts[id(o)] is part}


def operands(stmt: object) -> list[Operand]:
    """The tiles of an operation or a copy."""
    if isinstance(stmt, Copy):
        return [stmt.dst, stmt.src]
    return [operand for _, operand in stmt.operands] if isinstance(stmt, Op) else []


def find(kernel: Kernel) -> dict[int, RowLoop]:
    """Every loop over rows, by the identity of the loop."""
    found = (row_loop(stmt) for stmt in kernel.walk() if isinstance(stmt, Loop))
    return {id(one.loop): one for one in found if one is not None}


def row_loop(loop: Loop) -> RowLoop | None:
    """The loop as operations on whole tiles; None if it is anything else."""
    if loop.kind not in ("serial", "unroll") or len(loop.ranges) != 1 or loop.via or not loop.body:
        return None
    (item,) = loop.ranges
    if not item.start.is_zero or (item.step is not None and item.step.constant != 1):
        return None
    found = RowLoop(loop)
    for stmt in loop.body:
        known = isinstance(stmt, Op) and stmt.op.name in BY_ELEMENT
        if not (known or (isinstance(stmt, Copy) and not stmt.options)) or stmt.via:
            return None
        for operand in operands(stmt):
            part = _part(operand, item.var, item.extent)
            if part is None:
                return None
            found.parts[id(operand)] = part
        if any(arg.loads or _depends(arg.sym, item.var) for arg in scalars(stmt)):
            return None
        if any(a.writes and found.parts.get(id(a.operand)) is not Part.ROW for a in accesses(stmt)):
            return None
    if found.of(Part.ROW) & (found.of(Part.ELEMENT) | found.of(Part.ALONG)) or not found.of(Part.ROW):
        return None
    return found


def _part(operand: Operand, row: Sym, count: Sym) -> Part | None:
    buffer, dims = operand.buffer, operand.dims
    if not buffer.is_tile:
        return None
    if dims is None:
        along = len(buffer.shape) == 1 or (len(buffer.shape) == 2 and buffer.shape[0].constant == 1)
        return Part.ALONG if along else None
    if len(dims) != len(buffer.shape) or any(_depends(dim.lo, row) for dim in dims[1:]):
        return None
    if dims[0].is_point and dims[0].lo == row and buffer.shape[0] == count:
        rest = list(zip(dims[1:], buffer.shape[1:], strict=True))
        if len(rest) == 1 and rest[0][0].covers(rest[0][1]):
            return Part.ROW
        return Part.ELEMENT if all(d.is_point and d.lo.is_zero and size.constant == 1 for d, size in rest) else None
    if len(dims) == 2 and buffer.shape[0].constant == 1 and dims[0].lo.is_zero and not dims[1].is_point:
        return Part.ALONG if dims[1].lo.is_zero and dims[1].extent == buffer.shape[1] else None
    return None


def _depends(sym: Sym, row: Sym) -> bool:
    return any(sym.depends_on(name) for name in row.variables())
