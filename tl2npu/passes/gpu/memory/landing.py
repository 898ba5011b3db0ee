"""Whether a product may be copied from L0C straight into the tile that the vector cores use.

The compiler puts the read-back in front of the first reader of the destination in the text; that must be an operation
on the whole tile, or it is repeated for every row (compiler-facts, rule 7; g2_rowvec, g2_rowloop_inpl).
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.functions import ASCEND_LOOPS
from tl2npu.kernel.access import changes, reads, touches
from tl2npu.kernel.memory.chains import Chain
from tl2npu.kernel.model import Branch, Buffer, Copy, Loop, Memory, Op, Stmt, Store
from tl2npu.kernel.runtime import Late
from tl2npu.passes.gpu.memory.layout import Layout
from tl2npu.passes.gpu.memory.masked_products import keeps_whole
from tl2npu.source.tree import walk as nodes


def read_whole(layout: Layout, chain: Chain) -> bool:
    """The first reader of the sum takes the whole tile, and nothing reads the buffer above it in the text."""
    buffer = chain.buffer
    for stmt in layout.kernel.walk():
        if stmt is chain.anchor:
            break
        if any(operand.buffer is buffer for operand in reads(stmt)) and stmt not in chain.gemms:
            return False
    return reader_takes_whole(layout, chain)


def reader_takes_whole(layout: Layout, chain: Chain) -> bool:
    """The first statement behind the product that touches its tile reads all of it."""
    site = layout.places[id(chain.anchor)]
    later = [stmt for stmt in site.body[site.position + 1 :] if touches(stmt, chain.buffer)]
    return takes_whole(layout.late, later, chain.buffer)


def needs_own_tile(layout: Layout, copy: Copy) -> bool:
    """An author's copy of a product whose first reader would load it row by row, or in one arm only, or that goes on
    to L1 as it is: a copy to L1 is a store to a workspace for the compiler, and loads nothing."""
    site = layout.places[id(copy)]
    tile = copy.dst.buffer
    later = [s for s in site.body[site.position + 1 :] if touches(s, tile)]
    after = later[0] if later else None
    if layout.homes[tile].l1 and not (after is not None and changes(after, tile)):
        return True
    if isinstance(after, Branch):
        return not takes_whole(layout.late, later, tile)
    if not isinstance(after, Loop) or keeps_whole(layout.late, after, tile):
        return False
    return changes(after, tile) and not (after.kind == "parallel" and _tiles_only(after))


def takes_whole(late: Late, later: Sequence[Stmt], buffer: Buffer) -> bool:
    """The first of these statements reads the whole tile; at a branch that Python decides, whichever it takes."""
    after = later[0] if later else None
    if isinstance(after, Branch):
        masked = _masked(late, after, buffer)
        return masked is not None and (masked or takes_whole(late, later[1:], buffer))
    if after is not None and keeps_whole(late, after, buffer):
        return True
    if isinstance(after, Copy):
        return after.src.buffer is buffer and after.src.is_whole and after.dst.buffer.memory is not Memory.GM
    if isinstance(after, Op):
        whole = after.op.name.startswith(("reduce_", "tile."))
        return whole and all(operand.is_whole for _, operand in after.operands)
    return isinstance(after, Loop) and after.kind == "parallel" and _tiles_only(after)


def _masked(late: Late, stmt: Stmt, buffer: Buffer) -> bool | None:
    """Whether the whole tile is masked, in any case (True) or where Python asks for it (False); None if it is not."""
    if not isinstance(stmt, Branch):
        return keeps_whole(late, stmt, buffer) or None
    if not late.python_decides(stmt):
        return None
    arms = [[s for s in arm if touches(s, buffer)] for arm in (stmt.then, stmt.orelse)]
    found = [(_masked(late, arm[0], buffer) if len(arm) == 1 else None) if arm else False for arm in arms]
    return None if None in found else all(found)


def goes_by_rows(after: Stmt | None) -> bool:
    """A loop that asks for a value of each row: the compiler would load the product again for every one."""
    if not isinstance(after, Loop) or after.kind != "parallel":
        return False
    variables = [item.var for item in after.ranges]
    stores = [stmt for stmt in after.body if isinstance(stmt, Store)]
    return any([dim.lo for dim in load.dims or ()] == variables[:1] for stmt in stores for load in stmt.value.loads)


def _tiles_only(loop: Loop) -> bool:
    """Whole tiles and scalars, element by element: no row vectors and no conditions, which become loops over rows."""
    variables = [item.var for item in loop.ranges]
    for stmt in loop.body:
        if not isinstance(stmt, Store):
            return False
        for operand in (stmt.target, *stmt.value.loads):
            if operand.dims is None or [dim.lo for dim in operand.dims] != variables:
                return False
        if any(isinstance(node, cst.IfExp) or _is_no_instruction(node) for node in nodes(stmt.value.node)):
            return False
    return True


def _is_no_instruction(node: cst.CSTNode) -> bool:
    """A call of anything but a function that runs on an element."""
    if not isinstance(node, cst.Call):
        return False
    attribute = isinstance(node.func, cst.Attribute) and node.func.attr.value in ASCEND_LOOPS
    return not (attribute and all(isinstance(arg.value, cst.Subscript) for arg in node.args))
