"""TL462: fills with a Python number, which the operators reject while they build the kernel."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op, Operand, Scalar
from tl2npu.source.tree import calls_in

_VALUES = {"vbrc": "src", "fill": "value"}


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every fill."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op):
            continue
        value = stmt.args.get(_VALUES.get(SHORT.get(stmt.op.name, ""), ""))
        if isinstance(value, Operand) or not isinstance(value, Scalar) or value.loads:
            continue
        called = any(_is_language(subject, call) for call in calls_in(value.node))
        if not called and subject.late.is_outside(value.node, stmt.env):
            text = f"`{code(value.node)}` is a Python number, which T.{stmt.op.name} rejects"
            yield Finding("TL462", stmt.node, text)


def _is_language(subject: Subject, call: cst.Call) -> bool:
    return (subject.file.names.resolve(call.func) or "").startswith("tilelang.language.")
