"""TL750: operators whose result must not lie on their operand: the library reads the operand again at the end; copies
inside of a tile.

For target pto the same operators leave their intermediate results in the operand, which must not be needed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.subject import PTO, Finding, Placed, Subject
from tl2npu.dialects.ascend.in_place import WRONG_IN_PLACE
from tl2npu.kernel.access import accesses
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.model import Buffer, Copy, Memory, Op, Operand

_OVERWRITES = ("tile.silu", "tile.sigmoid", "tile.pow")
"""For target pto: they compute in their operand (src/tl_templates/pto/common.h:TSIGMOID, pow; facts 11, executed)."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every operator that is wrong in place."""
    target = "pto" if subject.target == "pto" else "ascendc"
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Copy) and _moves_on(stmt):
            text = f"the copy overwrites elements of `{stmt.src.buffer.name}` before it reads them"
            yield Finding("TL750", stmt.node, text, None if target == PTO else "warning")
        wrong = isinstance(stmt, Op) and target in WRONG_IN_PLACE.get(stmt.op.name, ())
        overwrites = isinstance(stmt, Op) and target == PTO and stmt.op.name in _OVERWRITES
        if not isinstance(stmt, Op) or not (wrong or overwrites):
            continue
        result, *others = [arg for arg in stmt.args.values() if isinstance(arg, Operand)]
        first = others[0].buffer if others else result.buffer
        again = any(other.buffer is first for other in others[1:])
        if wrong and any(other.buffer is result.buffer for other in others):
            text = f"for target {target}, T.{stmt.op.name} reads `{result.buffer.name}` after overwriting it"
            yield Finding("TL750", stmt.node, text)
        elif overwrites and (again or (first is not result.buffer and _is_needed(subject, placed, first))):
            text = f"for target {target}, T.{stmt.op.name} overwrites its operand `{first.name}`"
            yield Finding("TL750", stmt.node, text)


def _moves_on(copy: Copy) -> bool:
    """Whether a copy inside of one tile begins behind its source and reaches into it: it goes forward, block by block.

    Executed for ``pto``: ``T.copy(c[0:15, :], c[1:16, :])`` makes every row the first one. For ``ascendc`` it is one
    ``DataCopy`` (common.h:copy_ub_to_ub), of which nothing says that it may overlap.
    """
    extents = extents_of(copy.src)
    if copy.src.buffer is not copy.dst.buffer or copy.src.buffer.memory is not Memory.UB or extents is None:
        return False
    pairs = zip(copy.dst.dims or (), copy.src.dims or (), extents, strict=False)
    shifts = [((to.lo - at.lo).constant, extent.constant) for to, at, extent in pairs]
    known = all(shift is not None and (not shift or (size is not None and abs(shift) < size)) for shift, size in shifts)
    return known and next((shift > 0 for shift, _ in shifts if shift), False)


def _is_needed(subject: Subject, placed: Placed, buffer: Buffer) -> bool:
    """Whether a buffer is read after a statement, in the order of the text or in the next turn of a loop."""
    loop = placed.loops[-1] if placed.loops else None
    rewritten = loop is None
    for other in subject.statements:
        found = [access for access in accesses(other.stmt) if access.operand.buffer is buffer]
        if other is placed or not found:
            continue
        if other.order > placed.order and any(access.reads for access in found):
            return True
        rewritten = rewritten or (loop in other.loops and any(access.writes for access in found))
        if other.order > placed.order:
            break
    return not rewritten
