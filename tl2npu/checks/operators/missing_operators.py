"""TL743: operators that the code generator of the target does not have: "Unresolved call Op(tl.ascend_sin)"."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.kernel.model import Op
from tl2npu.results import Severity


def check(subject: Subject) -> Iterator[Finding]:
    """An error where the kernel names target ``pto``, a warning where it names no target."""
    if PTO not in subject.targets:
        return
    severity: Severity | None = None if subject.target == PTO else "warning"
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name in subject.compiler.lacking_for_pto:
            yield Finding("TL743", stmt.node, f"T.{stmt.op.name} does not exist for target pto", severity)
