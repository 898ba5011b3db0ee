"""TL453: choices that guard the load of a single element become branches.

``x[i, j] = T.if_then_else(row[i] >= 0, A[row[i], j], 0.0)`` runs element by element, and for single elements the
compiler has no choice. A branch is one, and loads only what its condition allows. The same is done where a load may
begin before its tensor unless the condition holds: a whole tile would be loaded from there (TL413). A GPU reads zeros
at an index of -1; where the kernel compares what its table holds, a branch does so here.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Let, Loop, Memory, Stmt, Store, walk, walk_with_parents
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.ranges.reach import Reach, chosen_parts, lies_inside
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called, is_vector
from tl2npu.passes.writing.plan import Plan
from tl2npu.passes.writing.statements import flat, parse
from tl2npu.source.tree import mentioned, nodes_of

_CHOICE = "if_then_else"
_ARGUMENTS = 3


def to_branches(job: Job) -> None:
    """Rewrite the stores of ``T.Parallel`` whose whole value is such a choice."""
    plan, compared = Plan(job), _compared(job)
    for stmt, parents in walk_with_parents(job.kernel.body):
        loops = [above for above in parents if isinstance(above, Loop)]
        ranges = [item for loop in loops if loop.kind == "parallel" for item in loop.ranges]
        if not ranges or not isinstance(stmt, Store) or stmt.via:
            continue
        if (row := _row_of_table(job, stmt, compared)) is not None:
            target, value = flat(stmt.target.node), flat(stmt.value.node)
            text = f"if {row} >= 0:\n    {target} = {value}\nelse:\n    {target} = 0\n"
            plan.replace(stmt.node, parse(job, text, stmt.node))
            job.change("TL453", stmt.node, f"wrote a branch: a GPU reads zeros where `{row}` is negative")
            continue
        choice = _choice(job, stmt.value.node) if not stmt.augmented else None
        guarded = _needs_condition(job, stmt, parents)
        if choice is None and not guarded:
            continue
        if choice is None or (guarded and _needs_order(job, stmt, choice)):
            text = f"`{flat(stmt.value.node)}` may read out of bounds where its condition is false"
            raise Blocked("TL179", stmt.node, text)
        picked = {let.name for loop in loops for let in walk(loop.body) if isinstance(let, Let) and let.value.loads}
        by_tensor = any(picked & mentioned(load.node) for load in stmt.value.loads)
        if not by_tensor and is_vector(stmt, ranges) and not guarded:
            continue
        plan.replace(stmt.node, parse(job, "\n".join(_lines(job, flat(stmt.target.node), choice)) + "\n", stmt.node))
        job.change("TL453", stmt.node, "wrote a branch per element: the condition guards the load")
    plan.apply()


def _compared(job: Job) -> set[Buffer]:
    """Tensors whose elements, or those of a tile that they are copied to, the kernel compares."""
    evaluator, stmts = job.file.evaluator, list(job.kernel.walk())
    found = {
        operand.buffer
        for stmt in stmts
        for comparison in nodes_of(stmt.node, cst.Comparison)
        for node in nodes_of(comparison, cst.Subscript)
        if (operand := evaluator.operand(node, stmt.env)) is not None
    }
    return found | {stmt.src.buffer for stmt in stmts if isinstance(stmt, Copy) and stmt.dst.buffer in found}


def _row_of_table(job: Job, stmt: Store, compared: set[Buffer]) -> str | None:
    """The index, if a statement moves an element of a tensor whose row stands in a table that the kernel compares."""
    load = job.file.evaluator.operand(stmt.value.node, stmt.env)
    if load is None or load.buffer.memory is not Memory.GM or stmt.augmented:
        return None
    for node in nodes_of(stmt.value.node, cst.Index):
        table = job.file.evaluator.operand(node.value, stmt.env)
        if table is not None and table.buffer in compared:
            return flat(node.value)
    return None


def _choice(job: Job, node: cst.BaseExpression) -> cst.Call | None:
    """The call, if an expression is a choice and nothing else."""
    for call, name in called(job, node):
        plain = len(call.args) == _ARGUMENTS and not any(arg.keyword or arg.star for arg in call.args)
        if call is node and name == _CHOICE and plain:
            return call
    return None


def _begins_before(bounds: Bounds, low: Sym) -> bool:
    """A GPU reads zeros there. What is a sum of sizes, block indices and loop variables is not negative."""
    return any(factor < 0 for _, factor in low.terms) and not bounds.is_not_negative(low)


def _needs_order(job: Job, stmt: Store, choice: cst.Call) -> bool:
    """True if a part of the condition is what allows another part."""
    evaluator, env = job.file.evaluator, stmt.env
    return any(
        under and isinstance(node, cst.Subscript) and evaluator.operand(node, env) is not None
        for node, under in chosen_parts(evaluator, choice.args[0].value)
    )


def _lines(job: Job, target: str, value: cst.BaseExpression, depth: str = "") -> Iterator[str]:
    choice = _choice(job, value)
    if choice is None:
        yield f"{depth}{target} = {flat(value)}"
        return
    cond, yes, no = (arg.value for arg in choice.args)
    yield f"{depth}if {flat(cond.with_changes(lpar=(), rpar=()))}:"
    yield from _lines(job, target, yes, depth + "    ")
    yield f"{depth}else:"
    yield from _lines(job, target, no, depth + "    ")


def _needs_condition(job: Job, stmt: Store, parents: tuple[Stmt, ...]) -> bool:
    """An element is read under a condition from a place that is not known to lie inside of its buffer without it.

    Where a tensor ends is asked elsewhere (TL438, TL439), but for axes that the loop does not go along.
    """
    evaluator, env = job.file.evaluator, stmt.env
    bounds = Reach(job.kernel, evaluator).bounds(parents, stmt)
    moving = [str(item.var) for above in parents if isinstance(above, Loop) for item in above.ranges]
    for node, under in chosen_parts(evaluator, stmt.value.node):
        load = evaluator.operand(node, env) if isinstance(node, cst.Subscript) else None
        if load is None:
            continue
        tensor = load.buffer.memory is Memory.GM
        if not under:
            if tensor and any(_begins_before(bounds, dim.lo) for dim in load.dims or ()):
                raise Blocked("TL179", stmt.node, f"`{code(node)}` may start before `{load.buffer.name}`")
            continue
        ends = {n for n, dim in enumerate(load.dims or ()) if tensor and any(dim.lo.depends_on(var) for var in moving)}
        if not lies_inside(bounds, load, ends):
            return True
    return False
