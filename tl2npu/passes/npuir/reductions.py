"""TL415, TL419: reductions and scans in the form of AscendNPU IR.

``clear`` is a keyword: its place by position is that of a size. Reductions of absolute values would take those in the
source itself (``npuir_reduce``); they are taken in a tile of its own.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Memory, Op, Operand, Scalar
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import Names, expression, parse
from tl2npu.passes.writing.tiles import dtype_text, shape_text

_PLAIN = {"reduce_max": "reduce_max", "reduce_min": "reduce_min", "reduce_sum": "reduce_sum"}
_ABSOLUTE = {"reduce_absmax": "reduce_max", "reduce_abssum": "reduce_sum"}
_CLEAR = 3
"""The place of ``clear`` on a GPU."""


def rewrite(job: Job) -> None:
    """Rewrite what has another form; raises :class:`Blocked` for what there is not."""
    plan, names = Plan(job), Names(job)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.kind is not Kind.REDUCE:
            continue
        if stmt.op.name == "cumsum":
            _scan(stmt)
        elif stmt.op.name in _PLAIN | _ABSOLUTE:
            _reduce(job, plan, names, stmt)
        else:
            raise Blocked("TL415", stmt.node, f"AscendNPU IR has no counterpart for `T.{stmt.op.name}`")
    plan.apply()


def _scan(stmt: Op) -> None:
    reverse = stmt.args.get("reverse")
    if isinstance(reverse, Scalar) and reverse.sym.constant != 0 and code(reverse.node) != "False":
        raise Blocked("TL415", stmt.node, "AscendNPU IR has no backward scan")
    if any(not operand.is_whole for _, operand in stmt.operands):
        raise Blocked("TL415", stmt.node, "AscendNPU IR cannot scan a part of a tile")


def _reduce(job: Job, plan: Plan, names: Names, stmt: Op) -> None:
    src = stmt.args.get("buffer")
    if not isinstance(src, Operand) or src.buffer.memory is Memory.GM:
        raise Blocked("TL415", stmt.node, f"cannot tell which tile `T.{stmt.op.name}` reduces")
    call = stmt.call
    args = list(call.args)
    positional = [arg for arg in args if arg.keyword is None]
    if len(positional) > _CLEAR:
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        args[_CLEAR] = args[_CLEAR].with_changes(keyword=cst.Name("clear"), equal=equal)
        job.change("TL419", stmt.node, "passed `clear` by name")
    lines: list[cst.BaseStatement] = []
    func = call.func
    if stmt.op.name in _ABSOLUTE:
        if not _is_own_tile(src):
            raise Blocked("TL415", stmt.node, "cannot reduce the absolute values of a part of a tile")
        tile = _beside(job, plan, names.fresh(f"{src.buffer.name}_abs"), src.buffer, src.buffer)
        lines += parse(job, f"T.vabs({src.buffer.name}, {tile})\n", stmt.node)
        args[0] = args[0].with_changes(value=cst.Name(tile))
        func = expression(job, f"T.{_ABSOLUTE[stmt.op.name]}", call.func)
        job.change("TL419", stmt.node, f"stored the absolute values of `{src.buffer.name}` in a separate tile")
    dst = stmt.args.get("out")
    if isinstance(dst, Operand) and element_type(job, src.buffer) != element_type(job, dst.buffer):
        if lines or not _is_own_tile(src):
            raise Blocked("TL415", stmt.node, "cannot convert the element type in this reduction")
        tile = _beside(job, plan, names.fresh(f"{src.buffer.name}_cast"), src.buffer, dst.buffer)
        lines += parse(job, f"T.copy({src.buffer.name}, {tile})\n", stmt.node)
        args[0] = args[0].with_changes(value=cst.Name(tile))
        job.change("TL419", stmt.node, f"converted `{src.buffer.name}` first: a reduction has one element type")
    if lines or func is not call.func or any(new is not old for new, old in zip(args, call.args, strict=True)):
        new = call.with_changes(func=func, args=args)
        plan.replace(stmt.node, [*lines, cst.SimpleStatementLine([cst.Expr(new)])])  # type: ignore[list-item]


def _is_own_tile(operand: Operand) -> bool:
    """The whole of a tile that has an allocation of its own."""
    return operand.buffer.statement is not None and operand.is_whole


def _beside(job: Job, plan: Plan, name: str, tile: Buffer, typed: Buffer) -> str:
    """A new tile of the size of one and the type of another, allocated behind the first; its name."""
    assert tile.statement is not None
    text = f"{name} = T.alloc_shared({shape_text(tile)}, {dtype_text(typed)})\n"
    plan.after(tile.statement, parse(job, text, tile.statement))
    return name
