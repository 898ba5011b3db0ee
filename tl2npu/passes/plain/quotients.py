"""TL603: ``(by * block_K + j) // group`` is ``by * block_K // group`` for all ``j`` of a loop over ``block_K`` columns.

The factory asserts ``group % block_K == 0``: a row then lies within one group, and reads one scale. The element would
else be read for each column. With ``m`` the extent of the loop, ``x`` a multiple of ``m`` and ``d = c * m`` with ``c``
positive, ``(x + j) // d`` is ``x // d`` for ``0 <= j < m``.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.assertions import divisions, multiples
from tl2npu.kernel.model import Loop, Range, children, walk
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of


def drop_columns(job: Job) -> None:
    """Leave the loop variable out of quotients that are the same in all of the loop."""
    edits, done = Edits(job.file.index), set[int]()
    for loop in job.kernel.walk():
        if not isinstance(loop, Loop) or loop.kind != "parallel":
            continue
        for stmt in walk(loop.body):
            for node in () if children(stmt) else nodes_of(stmt.node, cst.BinaryOperation):
                if id(node) in done or not isinstance(node.operator, cst.FloorDivide):
                    continue
                new = next((found for item in loop.ranges if (found := _without(job, node, item, stmt.env))), None)
                if new is not None:
                    done |= {id(inner) for inner in nodes_of(node, cst.BinaryOperation)}
                    edits.replace(node, new)
                    job.change("TL603", stmt.node, f"`{code(node)}` is `{code(new)}` in all of the loop")
    job.apply(edits)


def _without(job: Job, node: cst.BinaryOperation, item: Range, env: Env) -> cst.BaseExpression | None:
    """The quotient without the loop variable; None where that may be another number."""
    left = _rest(node.left, item.name)
    if left is None or item.start != const(0) or item.step not in (None, const(1)):
        return None
    evaluator = job.file.evaluator
    rest, divisor = evaluator.sym(left, env), evaluator.sym(node.right, env)
    is_sum = evaluator.sym(node.left, env) == rest + item.var
    if not is_sum or rest.depends_on(item.name) or not (rest % item.extent).is_zero:
        return None
    return node.with_changes(left=left) if any(map(divisor.__eq__, _multiples(job, item.extent, env))) else None


def _multiples(job: Job, extent: Sym, env: Env) -> Iterator[Sym]:
    """What is known to be a multiple of an extent."""
    evaluator = job.file.evaluator
    yield extent
    for of, by in divisions(job.file, job.located):
        if evaluator.sym(by, env) == extent:
            yield evaluator.sym(of, env)
    for name, number in multiples(job.file, job.located).items():
        if extent.constant is not None and number % extent.constant == 0:
            yield evaluator.sym(cst.Name(name), env)


def _rest(node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """A sum without one of its terms, which is a name; None if that is none."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return None
    for part, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(part, cst.Name) and part.value == name:
            return other.with_changes(lpar=node.lpar, rpar=node.rpar) if _binds(other) else other
    left = _rest(node.left, name)
    return node.with_changes(left=left) if left is not None else None


def _binds(node: cst.BaseExpression) -> bool:
    """Whether a dividend needs the parentheses of the sum: ``a * b // c`` does not, ``(a + b) // c`` does."""
    operator = node.operator if isinstance(node, cst.BinaryOperation) else None
    return isinstance(node, cst.BinaryOperation) and not node.lpar and not isinstance(operator, cst.Multiply)
