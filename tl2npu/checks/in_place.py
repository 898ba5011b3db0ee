"""TL750: operators whose result must not lie on their operand: the library reads the operand again at the end."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.model import Op, Operand

_WRONG = {"tile.silu": ("ascendc", "pto"), "tile.sigmoid": ("pto",)}
"""Measured on a 910B3 with CANN 8.5.2 (#1657, #1658): what is wrong in place, by target."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every operator that is wrong in place."""
    target = "pto" if subject.target == "pto" else "ascendc"
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op) or target not in _WRONG.get(stmt.op.name, ()):
            continue
        result, *others = [arg for arg in stmt.args.values() if isinstance(arg, Operand)]
        if any(other.buffer is result.buffer for other in others):
            text = f"for target {target}, T.{stmt.op.name} reads `{result.buffer.name}` after overwriting it"
            yield Finding("TL750", stmt.node, text)
