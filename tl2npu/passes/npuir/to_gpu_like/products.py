"""TL448: the arguments of a product in the words of the GPU language."""

from __future__ import annotations

from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op, Operand, Scalar
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits

_FLAGS = {"a_transpose": "transpose_A", "b_transpose": "transpose_B"}


def rewrite(job: Job) -> None:
    """``a_transpose``, ``b_transpose`` and ``initC``; sizes are gone before."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or SHORT.get(stmt.op.name) != "gemm" or stmt.op.param("initC") is None:
            continue
        new = expression(job, _text(stmt), stmt.node)
        if code(new) != code(stmt.call):
            edits.replace(stmt.call, new)
            job.change("TL448", stmt.node, "renamed the arguments of the gemm")
    job.apply(edits)


def _text(stmt: Op) -> str:
    words = [code(stmt.args[name].node) for name in ("A", "B", "C")]
    for old, new in _FLAGS.items():
        flag = stmt.args.get(old)
        if flag is not None and not _is(flag, 0):
            words.append(f"{new}={code(flag.node)}")
    init = stmt.args.get("initC")
    if init is not None and not _is(init, 0):
        words.append(f"clear_accum={code(init.node.with_changes(lpar=(), rpar=()))}")
    return f"T.gemm({', '.join(words)})"


def _is(arg: Operand | Scalar, value: int) -> bool:
    return isinstance(arg, Scalar) and arg.sym.constant == value
