"""TL410: ``T.tanh(x)`` is written with the sigmoid, ``2.0 * T.sigmoid(2.0 * x) - 1.0``.

``T.vtanh`` is a quotient of exponentials in the compiler for AscendNPU IR (``codegen_npuir_dev.cc``), and no number
where the exponential overflows; the sigmoid has a limit there.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.model import Store, walk_with_parents
from tl2npu.kernel.regions import substitute
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called, flat
from tl2npu.passes.writing.statements import expression, factor
from tl2npu.source.edits import Edits


def by_sigmoid(job: Job) -> None:
    """Rewrite every ``T.tanh`` in the stores of ``T.Parallel``."""
    while True:
        edits = Edits(job.file.index)
        for stmt, parents in walk_with_parents(job.kernel.body):
            inside = any(getattr(above, "kind", "") == "parallel" for above in parents)
            if not inside or not isinstance(stmt, Store) or stmt.via:
                continue
            call = next((call for call, name in called(job, stmt.value.node) if name == "tanh"), None)
            if call is None or len(call.args) != 1:
                continue
            text = f"2.0 * T.sigmoid(2.0 * {factor(flat(call.args[0].value))})"
            place: cst.BaseExpression | None = _one_more(job, stmt.value.node, call)
            if place is None:
                place, text = call, f"{text} - 1.0"
            new = substitute(stmt.value.node, {id(place): expression(job, f"({text})", call)})
            assert isinstance(new, cst.BaseExpression)
            edits.replace(stmt.value.node, _bare(new) if place is stmt.value.node else new)
            job.change("TL410", call, "wrote `T.tanh` with `T.sigmoid`: `T.vtanh` overflows")
        if not edits:
            return
        job.apply(edits)


def _one_more(job: Job, value: cst.BaseExpression, call: cst.Call) -> cst.BinaryOperation | None:
    """The sum of the call and 1, as GELU has it; the ones cancel."""
    above = job.file.index.parent(call)
    if call is value or not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Add):
        return None
    other = above.left if above.right is call else above.right
    return above if isinstance(other, (cst.Integer, cst.Float)) and other.evaluated_value == 1 else None


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(), rpar=())
