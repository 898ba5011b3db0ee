"""TL133: ``T.gemm(a, b, acc, clear_accum=k == 0)`` in a loop that also does other things with ``acc``.

The product starts from zeros in some turns, and from what others left in the tile in the rest:
``if k == 0: T.clear(acc)``, and a product that is added.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Op, Operand, Scalar, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import parse
from tl2npu.source.edits import Edits


def apart(job: Job) -> None:
    """Clear such accumulators in a statement of their own."""
    edits = Edits(job.file.index)
    for stmt, parents in walk_with_parents(job.kernel.body):
        given = stmt.args.get("clear_accum") if isinstance(stmt, Op) else None
        loop = next((parent for parent in reversed(parents) if isinstance(parent, Loop)), None)
        if not isinstance(stmt, Op) or not isinstance(given, Scalar) or given.sym.constant is not None or stmt.via:
            continue
        line, total = job.file.index.parent(stmt.node), stmt.args.get("C")
        if loop is None or not isinstance(total, Operand) or total.dims is not None:
            continue
        if not _is_shared(loop, stmt, total):
            continue
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or given.loads:
            continue
        call = cst.ensure_type(stmt.node.value if isinstance(stmt.node, cst.Expr) else stmt.node, cst.Call)
        kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "clear_accum"]
        if len(kept) == len(call.args):
            continue
        kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
        name = total.buffer.name
        first = parse(job, f"if {code(given.node)}:\n    T.clear({name})", stmt.node)
        added = cst.Expr(call.with_changes(args=kept))
        edits.replace_many(line, [*first, line.with_changes(body=[added], leading_lines=())])
        job.change("TL133", stmt.node, f"cleared `{name}` in a statement of its own")
    job.apply(edits)


def _is_shared(loop: Loop, product: Op, total: Operand) -> bool:
    """Whether the loop uses the accumulator by other statements than its products."""
    return any(
        access.operand.buffer is total.buffer
        for stmt in walk([loop])
        if stmt is not product and not (isinstance(stmt, Op) and stmt.op.name == product.op.name)
        for access in accesses(stmt)
    )
