"""TL461: calls that the signature of an operator does not take, or takes for something else."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.language.signatures import mismatch
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import npuir
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op
from tl2npu.source.tree import calls_in


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every call of an operator in the launch, and in what it calls."""
    inlined = [placed.stmt.node for placed in subject.statements if placed.stmt.via]
    for root in (subject.kernel.launched.node, *inlined):
        for node in calls_in(root):
            op = npuir.lookup(subject.file.names.resolve(node.func) or "")
            if op is None or op.kind is Kind.SCALAR:
                continue
            message = mismatch(op, node)
            if message:
                yield Finding("TL461", node, message)
    for placed in subject.statements:
        if isinstance(placed.stmt, Op) and placed.stmt.op.kind is Kind.REDUCE:
            yield from _positional_clear(placed.stmt)


def _positional_clear(stmt: Op) -> Iterator[Finding]:
    """``T.reduce_max(x, m, 1, True)``: the fourth position is ``size``."""
    size = stmt.args.get("size")
    if size is not None and isinstance(size.node, cst.Name) and size.node.value in ("True", "False"):
        text = f"the fourth position of T.{stmt.op.name} is `size`: write `clear={code(size.node)}`"
        yield Finding("TL461", stmt.node, text)
