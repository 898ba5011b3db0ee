"""TL743: operators that the code generator of the target does not have: "Unresolved call Op(tl.ascend_sin)"."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op, Operand
from tl2npu.results import Severity

_ONLY_PTO = ("tile.row_expand_mul",)
"""``src/target/codegen_ascend.cc:2052``."""


def check(subject: Subject) -> Iterator[Finding]:
    """An error where the kernel names target ``pto``, a warning where it names no target."""
    for placed in subject.statements if subject.target != PTO else ():
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name in _ONLY_PTO:
            text = f"T.{stmt.op.name} exists for target pto only: use T.{stmt.op.name}_experiment"
            yield Finding("TL743", stmt.node, text)
    if PTO not in subject.targets:
        return
    severity: Severity | None = None if subject.target == PTO else "warning"
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name in subject.compiler.lacking_for_pto:
            yield Finding("TL743", stmt.node, f"T.{stmt.op.name} does not exist for target pto", severity)
        elif isinstance(stmt, Op) and stmt.op.name == "tile.select" and isinstance(stmt.args.get("src1"), Operand):
            second = stmt.args["src1"]
            if isinstance(second, Operand) and is_element(second):
                text = f"T.tile.select with the element `{code(second.node)}` does not exist for target pto"
                yield Finding("TL743", stmt.node, text, severity)
