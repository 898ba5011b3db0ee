"""TL892: column slices between global memory and UB.

The rows of the slice are packed one behind the other, without the stride of the UB buffer. Evidence: facts 1
(g1_g_cols, gy_t2_colpartial, gy_ubub_col).
"""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory, Operand
from tl2npu.kernel.symbolic import const


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every copy between global memory and UB."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Copy):
            continue
        loads = stmt.src.buffer.memory is Memory.GM and stmt.dst.buffer.memory is Memory.UB
        stores = stmt.dst.buffer.memory is Memory.GM and stmt.src.buffer.memory is Memory.UB
        inner = stmt.dst if loads else stmt.src
        if (loads or (stores and subject.target != "pto")) and _is_column_slice(subject, inner):
            text = f"`{code(inner.node)}` is a part of the columns: its rows are packed without the rows' stride"
            yield Finding("TL892", stmt.node, text)


def _is_column_slice(subject: Subject, operand: Operand) -> bool:
    dims, shape = operand.dims, operand.buffer.shape
    if dims is None or len(dims) != len(shape) or len(dims) < 2:
        return False
    rows, last = dims[-2], dims[-1]
    if last.is_point or last.extent is None or rows.is_point or rows.extent == const(1):
        return False
    return not last.lo.is_zero or subject.known_different(last.extent, shape[-1])
