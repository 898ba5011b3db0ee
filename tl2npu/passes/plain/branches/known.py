"""TL117: conditions of the factory that the place of a kernel decides.

A macro that serves two kernels asks ``if has_bias:``, and each kernel stands in an arm of the same question, or behind
an ``if has_bias: return``. Written in place, the other arm would use what this kernel has not got.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.facts import facts
from tl2npu.kernel.model import Branch, Loop, Stmt
from tl2npu.passes.job import Job
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.substitute import closed
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of, replaced


def fold(job: Job) -> None:
    """Keep the arm that runs, of branches and of conditional expressions."""
    known = facts(job.file.index, job.located.node)

    def step() -> bool:
        edits = Edits(job.file.index)
        found = any(_fold(job, stmt, known, edits) for stmt in job.kernel.walk() if not stmt.via)
        job.apply(edits)
        return found

    until_settled(job, step)


def _fold(job: Job, stmt: Stmt, known: Mapping[str, bool], edits: Edits) -> bool:
    """Put one decision into the edits; True if there was one."""
    if isinstance(stmt, Loop):
        return False
    node = stmt.node
    if isinstance(stmt, Branch) and isinstance(node, cst.If):
        value = _decided(job, node.test, stmt.env, known)
        if value is None or isinstance(job.file.index.parent(node), cst.If):
            return False
        arm = node if value else node.orelse
        if isinstance(arm, cst.If) and arm is not node:
            edits.replace(node, arm.with_changes(leading_lines=()))
        elif arm is not None:
            edits.replace_many(node, list(body_of(arm)))
        else:
            edits.remove(node)
        job.change("TL117", node.test, f"`{code(node.test)}` is {value} for this kernel")
        return True
    if isinstance(node, cst.BaseCompoundStatement):
        return False
    for part in nodes_of(node, cst.IfExp):
        value = _decided(job, part.test, stmt.env, known)
        if value is not None:
            arm_node = part.body if value else part.orelse
            edits.replace(node, replaced(node, {id(part): arm_node if not part.lpar else closed(arm_node)}))
            job.change("TL117", part.test, f"`{code(part.test)}` is {value} for this kernel")
            return True
    return False


def _decided(job: Job, test: cst.BaseExpression, env: Env, known: Mapping[str, bool]) -> bool | None:
    """What a condition is known to be: a fact, its negation, or whether a parameter of a macro was given."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = _decided(job, test.expression, env, known)
        return None if inner is None else not inner
    if isinstance(test, cst.Name):
        return known.get(test.value)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        same = isinstance(target.operator, cst.Is)
        if (same or isinstance(target.operator, cst.IsNot)) and code(target.comparator) == "None":
            if code(test.left) == "None":
                return same
            if job.file.evaluator.buffer(test.left, env) is not None:
                return not same
    return None
