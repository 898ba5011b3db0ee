"""TL449: ``T.vbrc`` and fills with names become ``T.clear``, ``T.fill`` and, of a tile, a loop."""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.npuir import SHORT
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Op, Operand, Scalar
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def rewrite(job: Job) -> None:
    """Rewrite every fill with a value."""
    lets: dict[str, list[Let]] = {}
    for stmt in job.kernel.walk():
        if isinstance(stmt, Let):
            lets.setdefault(stmt.name, []).append(stmt)
    written_out: list[Let] = []
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op):
            continue
        short = SHORT.get(stmt.op.name)
        value = stmt.args.get({"vbrc": "src", "fill": "value"}.get(short or "", ""))
        target = stmt.args.get("dst" if short == "vbrc" else "buffer")
        if short == "clear" and stmt.op.name != "clear":
            edits.replace(stmt.call.func, expression(job, "T.clear", stmt.node))
            job.change("TL449", stmt.node, f"wrote a fill for `T.{stmt.op.name}`")
        if value is None or not isinstance(target, Operand):
            continue
        if isinstance(value, Operand) and not (value.dims and all(dim.is_point for dim in value.dims)):
            continue  # a tile that is spread
        text, let = _value(lets, value)
        if let is not None:
            written_out.append(let)
        place = code(target.node)
        new = f"T.clear({place})" if text in ("0", "0.0") else f"T.fill({place}, {text})"
        if new != code(stmt.call):
            edits.replace(stmt.call, expression(job, new, stmt.node))
            job.change("TL449", stmt.node, f"wrote a fill for `T.{stmt.op.name}`")
    for let in {id(let): let for let in written_out}.values():
        uses = sum(name.value == let.name for name in names_in(job.located.node))
        if uses == 1 + sum(other is let for other in written_out):
            edits.remove(let.node)
    job.apply(edits)


def _value(lets: dict[str, list[Let]], value: Operand | Scalar) -> tuple[str, Let | None]:
    """The value; a name that only stands for a constant is written out, as a fill of this language takes one."""
    node = value.node
    if isinstance(node, cst.Name):
        found = lets.get(node.value, [])
        if len(found) == 1 and _is_constant(found[0].value.node):
            return code(found[0].value.node), found[0]
    return code(node), None


def _is_constant(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return _is_constant(node.expression)
    if isinstance(node, cst.Call):
        return code(node.func).endswith(("infinity", "min_value", "max_value"))
    return isinstance(node, (cst.Integer, cst.Float))
