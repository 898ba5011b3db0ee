"""TL450: ``T.reduce(x, m, dims, reduce_mode)`` becomes ``T.reduce_max(x, m, dim)`` and the like."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op, Scalar
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression, parse
from tl2npu.source.edits import Edits

_MODES = frozenset({"sum", "max", "min", "abssum", "absmax"})
_SAME = frozenset({"cumsum", "atomic_add"})
"""Operators that mean the same in the GPU language, under their short name."""
_ABSOLUTE = {"reduce_abssum": "sum", "reduce_absmax": "max"}


def rewrite(job: Job) -> None:
    """Rewrite reductions and scans; sizes are gone before."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op):
            continue
        short = SHORT.get(stmt.op.name)
        if short in _SAME and stmt.op.name != short:
            edits.replace(stmt.call.func, expression(job, f"T.{short}", stmt.node))
        elif short == "reduce" and stmt.op.param("reduce_mode") is not None:
            lines = _general(job, stmt)
        elif short in _ABSOLUTE:
            lines = _steps(stmt, "buffer", "out", _ABSOLUTE[short], _dim(stmt.args.get("dim"), stmt))
        else:
            continue
        if short not in _SAME:
            edits.replace_many(stmt.node, parse(job, "\n".join(lines), stmt.node))
        job.change("TL450", stmt.node, f"renamed T.{stmt.op.name} and its arguments")
    job.apply(edits)


def _general(job: Job, stmt: Op) -> list[str]:
    mode = stmt.args["reduce_mode"]
    kind = str(job.file.evaluator.static(mode.node, stmt.env) or "")
    if kind not in _MODES:
        raise Blocked(
            "TL442", stmt.node, f"T.{stmt.op.name} by {kind or 'an unknown mode'} has no counterpart in Ascend C"
        )
    dim = _dim(stmt.args["dims"], stmt)
    if kind.startswith("abs"):
        return _steps(stmt, "src", "dst", kind.removeprefix("abs"), dim)
    return [_call(stmt, "src", "dst", kind, dim)]


def _steps(stmt: Op, source: str, target: str, kind: str, dim: str) -> list[str]:
    """The operator overwrites its source with absolute values, so that the loop does as well."""
    text = code(stmt.args[source].node)
    return [f"T.vabs({text}, {text})", _call(stmt, source, target, kind, dim)]


def _call(stmt: Op, source: str, target: str, kind: str, dim: str) -> str:
    words = [code(stmt.args[source].node), code(stmt.args[target].node)]
    if dim:
        words.append(f"dim={dim}")
    clear = stmt.args.get("clear")
    if isinstance(clear, Scalar) and clear.sym.constant != 1:
        words.append(f"clear={code(clear.node)}")
    return f"T.reduce_{kind}({', '.join(words)})"


def _dim(arg: object, stmt: Op) -> str:
    if arg is None:
        return ""
    node = getattr(arg, "node", None)
    if isinstance(node, (cst.List, cst.Tuple)):
        if len(node.elements) != 1:
            raise Blocked("TL442", stmt.node, f"Ascend C cannot reduce {len(node.elements)} axes at once")
        node = node.elements[0].value
    assert node is not None
    return code(node)
