"""TL467: T.Parallel loops that the compiler runs element by element, slowly and without a word."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.model import Loop
from tl2npu.kernel.npuir_loops import scalar_reason


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each loop nest."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Loop) and stmt.kind == "parallel" and not any(p.kind == "parallel" for p in placed.loops):
            why = scalar_reason(stmt, subject.late, subject.file.names)
            if why:
                yield Finding("TL467", stmt.node, f"{why}, so the loop runs element by element")
