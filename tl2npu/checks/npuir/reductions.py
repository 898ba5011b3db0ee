"""TL463: operators whose operands must have the same rank: reductions keep the reduced axis, with extent 1."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.npuir.regions import extents, shown
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.model import Op, Operand

_PAIRS = {
    **dict.fromkeys(("vbrc", "vcast", "vcos", "vsin", "verf", "vtanh", "transpose", "pad"), ("src", "dst")),
    "reduce": ("src", "dst"),
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_sum", "reduce_abssum", "reduce_absmax"), ("buffer", "out")),
}


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every such operator without ``size``."""
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Op) or SHORT.get(stmt.op.name) not in _PAIRS or "size" in stmt.args:
            continue
        source, target = (stmt.args.get(name) for name in _PAIRS[SHORT[stmt.op.name]])
        if not isinstance(source, Operand) or not isinstance(target, Operand):
            continue
        left, right = extents(source), extents(target)
        if len(left) != len(right):
            kept = "; a reduction keeps the axis, with extent 1" if stmt.op.kind is Kind.REDUCE else ""
            text = f"T.{stmt.op.name} from {shown(left)} to {shown(right)}: the ranks differ{kept}"
            yield Finding("TL463", stmt.node, text)
