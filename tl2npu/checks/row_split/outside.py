"""TL839: tiles in front of ``T.Kernel``, which ``threads=2`` leaves whole, and the number of the vector core.

The pass that halves buffers and moves copies visits the blocks in the launch; the root block around it keeps its
buffers (``src/transform/ascend_vid_reduction.cc``, VisitStmt_ of BlockNode). Each vector core so has all of such a
tile, and it is right if both fill it with the same values: from global memory and from each other, never from rows of
which the other core has different ones. Transfers between the cores are halved by another pass, which does not ask.

Nor does the compiler find such a tile where it sizes the scratch memory of an operator.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.row_split.split import Split, is_element, is_row_view, split_of, takes_its_rows
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.ascend.scratch import SIZED_BY_SOURCE, SIZED_BY_TARGET
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.model import CUBE_MEMORY, Buffer, Copy, Loop, Memory, Op, Operand, Scalar, Side, Stmt, Store

_CODE = "TL839"


def check(subject: Subject) -> Iterator[Finding]:
    """Findings of a kernel that has such a tile, or that asks for its vector core."""
    for placed in subject.statements:
        yield from _check_scratch(subject, placed.stmt)
    if not subject.is_split:
        return
    split = split_of(subject)
    if split.core is not None:
        yield from _check_core(subject, split.core)
    if not split.outside:
        return
    local = _local_values(subject, split)
    for placed in subject.statements:
        stmt = placed.stmt
        whole = [a.operand for a in accesses(stmt) if a.operand.buffer in split.outside]
        if not whole:
            continue
        name = whole[0].buffer.name
        if isinstance(stmt, Copy):
            yield from _check_copy(split, stmt, name)
        elif isinstance(stmt, Op) and not all(is_element(operand) for operand in whole):
            beside = [o for _, o in stmt.operands if split.has_rows(o.buffer)]
            if any(not is_row_view(o, whole=False) and not is_element(o) for o in beside):
                text = f"T.{stmt.op.name}: each vector core has all of `{name}`, but half of `{beside[0].buffer.name}`"
                yield Finding(_CODE, stmt.node, text)
        yield from _check_write(split, placed, local)


def _check_scratch(subject: Subject, stmt: Stmt) -> Iterator[Finding]:
    if not isinstance(stmt, Op):
        return
    name, pto = stmt.op.name.removeprefix("tile."), subject.target == "pto"
    uses = [a for a in accesses(stmt) if a.operand.buffer.memory is Memory.UB]
    sized = [a for a in uses if a.reads and not a.writes][:1] if name in SIZED_BY_SOURCE else []
    clear = stmt.args.get("clear")
    keeps = stmt.op.kind is Kind.REDUCE and isinstance(clear, Scalar) and clear.sym.is_zero
    if name in SIZED_BY_TARGET["pto" if pto else "ascendc"] or (keeps and pto):
        sized += [a for a in uses if a.writes]
    for access in sized:
        if access.operand.buffer.outside:
            where = f"`{access.operand.buffer.name}`, which is in front of `T.Kernel`"
            yield Finding(_CODE, stmt.node, f"T.{stmt.op.name} has scratch memory of the size of {where}: it crashes")


def _check_core(subject: Subject, core: str) -> Iterator[Finding]:
    for placed in subject.statements:
        stmt = placed.stmt
        cube = side_of(stmt) in (Side.CUBE, Side.BOTH) if isinstance(stmt, (Copy, Op)) else False
        if cube and any(dim.lo.depends_on(core) for a in accesses(stmt) for dim in a.operand.dims or ()):
            yield Finding(_CODE, stmt.node, "the cube core has no number of a vector core")


def _check_copy(split: Split, stmt: Copy, name: str) -> Iterator[Finding]:
    for inner, other in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
        if inner.buffer not in split.outside:
            continue
        if other.buffer.memory in CUBE_MEMORY:
            text = f"both vector cores transfer all of `{name}`, which is in front of `T.Kernel`"
            yield Finding(_CODE, stmt.node, text)
        elif other.buffer.memory is Memory.GM and inner is stmt.src:
            text = f"both vector cores would store all of `{name}`, which is in front of `T.Kernel`"
            yield Finding(_CODE, stmt.node, text)
        elif other is stmt.dst and takes_its_rows(split, inner, other):
            continue
        elif split.has_rows(other.buffer) and not is_row_view(other, whole=False) and not is_element(other):
            text = f"each vector core has all of `{name}`, but half of `{other.buffer.name}`"
            yield Finding(_CODE, stmt.node, text)
    if any(load.buffer in split.outside for load in (*stmt.src.loads, *stmt.dst.loads)):
        text = f"the compiler does not see that `{name}`, in front of `T.Kernel`, holds indices"
        yield Finding(_CODE, stmt.node, text)


def _check_write(split: Split, placed: Placed, local: set[Buffer]) -> Iterator[Finding]:
    """Both cores must fill the tile alike: outside of loops over rows, from nothing that they have halves of."""
    stmt = placed.stmt
    written = next((a.operand.buffer for a in accesses(stmt) if a.writes and a.operand.buffer in split.outside), None)
    if written is None:
        return
    around = {item for item in placed.ranges if any(split.has_rows(use.buffer) for use in split.rows.get(item, ()))}
    if around or any(a.reads and a.operand.buffer in local for a in accesses(stmt)):
        text = f"`{written.name}`, in front of `T.Kernel`, would hold different values on the two vector cores"
        yield Finding(_CODE, stmt.node, text)


def _local_values(subject: Subject, split: Split) -> set[Buffer]:
    """Halved tiles, and variables with values from them or from a loop over rows."""
    found = {buffer for buffer in split.halved if split.has_rows(buffer)}
    before = -1
    while before != len(found):
        before = len(found)
        for placed in subject.statements:
            if not isinstance(placed.stmt, (Store, Op, Loop)):
                continue
            written = _variables(placed.stmt)
            in_rows = any(item in split.rows for item in placed.ranges)
            if written and (in_rows or any(a.reads and a.operand.buffer in found for a in accesses(placed.stmt))):
                found |= written
    return found


def _variables(stmt: Stmt) -> set[Buffer]:
    operands: list[Operand] = [a.operand for a in accesses(stmt) if a.writes]
    return {o.buffer for o in operands if o.buffer.memory is Memory.VAR}
