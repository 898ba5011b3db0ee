"""TL406: numbers as fill values. ``T.fill`` takes an expression of the device, and raises TypeError for a number.

Variables and single elements cannot be filled or cleared at all: they are stored.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Memory, Op, Operand, Scalar, Stmt
from tl2npu.kernel.numbers import is_zero
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import literal
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, expression, flat, parse
from tl2npu.source.tree import mentioned, walk


def bind(job: Job) -> None:
    """``T.fill(x, 0)`` is ``T.clear(x)``; any other number gets a name first; an element or a variable is stored."""
    plan, names = Plan(job), Names(job)
    on_device = _device_names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.kind is not Kind.FILL or stmt.op.name not in ("clear", "fill"):
            continue
        target = stmt.args.get("buffer")
        if not isinstance(target, Operand):
            raise Blocked("TL406", stmt.node, f"cannot tell which buffer `T.{stmt.op.name}` fills")
        if target.buffer.memory is Memory.GM:
            text = f"`{target.buffer.name}` is a global tensor; fill a tile and copy it there"
            raise Blocked("TL406", stmt.node, text)
        if target.is_indexed or target.buffer.memory is Memory.VAR:
            _store(job, plan, stmt, target)
        elif not target.is_whole:
            text = f"the compiler would fill all of `{target.buffer.name}`, not only `{flat(target.node)}`"
            raise Blocked("TL417", stmt.node, text)
        elif stmt.op.name == "fill":
            _fill(job, plan, names, stmt, target, on_device)
    plan.apply()


def _store(job: Job, plan: Plan, stmt: Op, target: Operand) -> None:
    value = stmt.args.get("value")
    given: cst.BaseExpression = cst.Integer("0") if value is None else cst.parse_expression(flat(value.node))
    text = literal(job, target.buffer, given)
    plan.replace(stmt.node, parse(job, f"{code(target.node)} = {text}\n", stmt.node))
    name = target.buffer.name
    wrote = "an assignment" if target.dims is None else "a store"
    filled = f"`{name}`" if target.dims is None else f"one element of `{name}`"
    job.change("TL406", stmt.node, f"wrote {wrote} for the fill of {filled}")


def _fill(job: Job, plan: Plan, names: Names, stmt: Op, target: Operand, on_device: set[str]) -> None:
    value = stmt.args.get("value")
    if not isinstance(value, Scalar) or _is_expression(job, value, on_device):
        return
    if value.sym.is_zero or is_zero(value.node):
        call = expression(job, f"T.clear({code(target.node)})", stmt.node)
        plan.replace(stmt.node, [cst.SimpleStatementLine([cst.Expr(call)])])
        job.change("TL406", stmt.node, f"wrote `T.clear` for `{target.buffer.name}`: `T.fill` does not accept numbers")
        return
    name = names.fresh(f"{target.buffer.name}_value")
    lines = f"{name} = {flat(value.node)}\nT.fill({code(target.node)}, {name})\n"
    plan.replace(stmt.node, parse(job, lines, stmt.node))
    job.change(
        "TL406",
        stmt.node,
        f"bound the fill value of `{target.buffer.name}` to a name: `T.fill` does not accept numbers",
    )


def _is_expression(job: Job, value: Scalar, on_device: set[str]) -> bool:
    """The value is one of the device's: it is read from a tile, uses a name of the kernel or a function of TileLang."""
    if value.loads:
        return True
    for node in walk(value.node):
        if isinstance(node, cst.Name) and node.value in on_device:
            return True
        if isinstance(node, cst.Call) and job.file.names.operator(node.func):
            return True
    return False


def _device_names(job: Job) -> set[str]:
    """Names that the kernel binds to values of the device: blocks, loop variables, scalars, what it assigns."""
    kernel = job.kernel
    found = set(kernel.scalars) | set(kernel.launch.names if kernel.launch else ())
    for stmt in kernel.walk():
        found |= _bound(stmt)
    return found


def _bound(stmt: Stmt) -> set[str]:
    if isinstance(stmt, Let):
        return {stmt.name}
    if isinstance(stmt.node, cst.For):
        return mentioned(stmt.node.target)
    return set()
