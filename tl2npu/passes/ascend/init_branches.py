"""TL217: ``if k == 0: gemm(init=True) else: gemm()`` becomes one gemm with ``init=(k == 0)``.

Only where an operand arrives on chip: the compiler reloads a landing buffer before the first gemm in text order and not
in the other branch (R-BRANCH, E84). Elsewhere the author's form is as good and stays.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code, without_parentheses
from tl2npu.kernel.factories.positions import output_positions
from tl2npu.kernel.model import Branch, Op, Operand, Scalar, Stmt
from tl2npu.kernel.symbolic import Opaque
from tl2npu.passes.ascend import hand_overs
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits


def merge(job: Job) -> None:
    """Merge the branches around every gemm that reads a hand-over."""
    try:
        pairs, _ = hand_overs.find(job.kernel, output_positions(job.file, job.located))
    except Blocked:
        return  # the fusion itself will say why
    landing = {pair.dst for pair in pairs if not pair.to_vector}
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Branch) or stmt.via:
            continue
        first, second = _gemm(stmt.then), _gemm(stmt.orelse)
        if first is None or second is None or not any(o.buffer in landing for _, o in first.operands):
            continue
        merged = _merged(stmt, first, second)
        if merged is None:
            continue
        edits.replace(stmt.node, merged)
        job.change("TL217", stmt.node, "merged both gemms, so that the operand is loaded in every iteration")
    job.apply(edits)


def _gemm(body: list[Stmt]) -> Op | None:
    only = body[0] if len(body) == 1 else None
    return only if isinstance(only, Op) and only.op.kind is Kind.GEMM else None


def _init(stmt: Op) -> int | None:
    value = stmt.args.get("init")
    return value.sym.constant if isinstance(value, Scalar) else 0


def _merged(stmt: Branch, first: Op, second: Op) -> cst.SimpleStatementLine | None:
    """The accumulating gemm with the condition as its init; None if the branches differ otherwise."""
    condition = _condition(stmt)
    assert isinstance(stmt.node, cst.If)
    if condition is None or isinstance(stmt.node.orelse, cst.If):
        return None
    fresh, kept = (first, second) if condition else (second, first)
    if _init(fresh) != 1 or _init(kept) != 0 or not _same(first, second):
        return None
    text = _equation(stmt.node.test, condition)
    args = [a for a in kept.call.args if a.keyword is None or a.keyword.value != "init"]
    if len([a for a in args if a.keyword is None]) > 4:
        return None
    listed = ", ".join(code(a.with_changes(comma=cst.MaybeSentinel.DEFAULT)).strip() for a in args)
    call = cst.parse_expression(f"{code(kept.call.func)}({listed}, init=({text}))")
    return cst.SimpleStatementLine([cst.Expr(call)], leading_lines=stmt.node.leading_lines)


def _condition(stmt: Branch) -> bool | None:
    """True for ``x == 0``, False for ``x != 0``, None for anything else."""
    terms = stmt.cond.sym.terms
    atom = terms[0][0][0] if len(terms) == 1 and len(terms[0][0]) == 1 else None
    if not isinstance(atom, Opaque) or len(atom.args) != 2 or not atom.args[1].is_zero:
        return None
    return {"Equal": True, "NotEqual": False}.get(atom.head)


def _equation(test: cst.BaseExpression, is_one: bool) -> str:
    """The text of a condition as ``x == 0``: of itself, or of its opposite if it ``is_one`` not."""
    test = without_parentheses(test)
    if isinstance(test, cst.UnaryOperation):
        return _equation(test.expression, not is_one)
    return code(test) if is_one else code(test).replace("!=", "==")


def _same(first: Op, second: Op) -> bool:
    if first.op is not second.op:
        return False
    for name in (set(first.args) | set(second.args)) - {"init"}:
        left, right = first.args.get(name), second.args.get(name)
        if isinstance(left, Operand) and isinstance(right, Operand):
            if left.buffer is not right.buffer or code(left.node) != code(right.node):
                return False
        elif isinstance(left, Scalar) and isinstance(right, Scalar):
            if left.sym != right.sym:
                return False
        else:
            return False
    return True
