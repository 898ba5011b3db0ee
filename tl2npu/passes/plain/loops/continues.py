"""TL119, TL120: ``continue``, and ``T.thread_return()`` in a block, become the ``if`` that they mean."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported.names import operator_name
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, nodes_of

_RETURN = "thread_return"

_OPPOSITE: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.LessThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThan,
    cst.GreaterThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.GreaterThan,
}


def drop_continues(job: Job) -> None:
    """Put what a ``continue`` skips under the opposite condition; raises :class:`Blocked` for other forms."""

    def step() -> bool:
        found = next(iter(nodes_of(job.located.node.body, cst.Continue)), None)
        if found is not None and not _drop(job, found, "continue", cst.For):
            raise Blocked("TL120", found, "`continue` must be the last statement of an `if` directly in the loop")
        return found is not None

    until_settled(job, step)


def without_returns(job: Job) -> Job:
    """The job with what ``T.thread_return()`` skips under the opposite condition; the job itself where it has another
    form, which :mod:`tl2npu.passes.plain.unsupported` refuses.

    It ends a thread (``tilelang/language/tir/op.py``), and so a block if no thread goes on. A condition that differs
    between threads stays one, for each of them.
    """
    done = job.copied()

    def step() -> bool:
        calls = reversed(calls_in(done.located.node.body))  # what an earlier one skips has the later ones in it
        found = next((call for call in calls if operator_name(done, call.func) == _RETURN), None)
        line = done.file.index.parent(found) if found is not None else None
        return isinstance(line, cst.Expr) and _drop(done, line, "T.thread_return()", cst.With)

    until_settled(done, step)
    return job if done.file is job.file else done


def _drop(job: Job, node: cst.BaseSmallStatement, shown: str, around: type[cst.CSTNode]) -> bool:
    """Write the ``if`` for the last statement of one that stands directly in ``around``; False for another form."""
    index = job.file.index
    line = index.parent(node)
    block = index.parent(line) if line is not None else None
    branch = index.parent(block) if block is not None else None
    outer = index.parent(branch) if branch is not None else None
    if (
        not isinstance(branch, cst.If)
        or branch.orelse is not None
        or not isinstance(block, cst.IndentedBlock)
        or block.body[-1] is not line
        or not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
        or not isinstance(outer, cst.IndentedBlock)
        or not isinstance(index.parent(outer), around)
    ):
        return False
    place = next(i for i, statement in enumerate(outer.body) if statement is branch)
    rest = outer.body[place + 1 :]
    before = block.body[:-1]
    if before and rest:
        kept = cst.If(branch.test, block.with_changes(body=before), cst.Else(block.with_changes(body=rest)))
    elif before:
        kept = branch.with_changes(body=block.with_changes(body=before))
    elif rest:
        kept = branch.with_changes(test=negated(branch.test), body=block.with_changes(body=rest))
    edits = Edits(index)
    if before or rest:
        edits.replace(branch, kept.with_changes(leading_lines=branch.leading_lines))
    else:
        edits.remove(branch)
    for statement in rest:
        edits.remove(statement)
    job.change("TL119", node, f"wrote an `if` for `{shown}`")
    job.apply(edits)
    return True


def negated(test: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite condition; a comparison is turned round."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        opposite = _OPPOSITE.get(type(target.operator))
        if opposite is not None:
            operator = opposite().with_changes(
                whitespace_before=target.operator.whitespace_before,  # type: ignore[attr-defined]
                whitespace_after=target.operator.whitespace_after,  # type: ignore[attr-defined]
            )
            return test.with_changes(comparisons=[target.with_changes(operator=operator)])
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if not isinstance(test, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)) and not test.lpar:
        test = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), test)
