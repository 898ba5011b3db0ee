"""TL453: choices that guard the load of a single element become branches.

``x[i, j] = T.if_then_else(row[i] >= 0, A[row[i], j], 0.0)`` runs element by element, and for single elements the
compiler has no choice. A branch is one, and loads only what its condition allows. The same is done where a load may
begin before its tensor unless the condition holds: a whole tile would be loaded from there (TL413).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tl2npu.kernel.bounds import Bounds
from tl2npu.kernel.model import Let, Loop, Memory, Operand, Range, Store, walk, walk_with_parents
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.gpu.plan import Plan
from tl2npu.passes.gpu.statements import parse
from tl2npu.passes.job import Job
from tl2npu.passes.npuir.vectorised import called, flat, is_vector
from tl2npu.source.tree import names_in
from tl2npu.source.tree import walk as nodes

_CHOICE = "if_then_else"
_ARGUMENTS = 3


def to_branches(job: Job) -> None:
    """Rewrite the stores of ``T.Parallel`` whose whole value is such a choice."""
    plan = Plan(job)
    for stmt, parents in walk_with_parents(job.kernel.body):
        loops = [above for above in parents if isinstance(above, Loop)]
        ranges = [item for loop in loops if loop.kind == "parallel" for item in loop.ranges]
        if not ranges or not isinstance(stmt, Store) or stmt.augmented or stmt.via:
            continue
        choice = _choice(job, stmt.value.node)
        if choice is None:
            continue
        picked = {let.name for loop in loops for let in walk(loop.body) if isinstance(let, Let) and let.value.loads}
        by_tensor = any(picked & {name.value for name in names_in(load.node)} for load in stmt.value.loads)
        if not by_tensor and is_vector(stmt, ranges) and not _may_begin_before(stmt, choice, loops, ranges):
            continue
        plan.replace(stmt.node, parse(job, "\n".join(_lines(job, flat(stmt.target.node), choice)) + "\n", stmt.node))
        job.change("TL453", stmt.node, "a branch for each element: the condition guards what is loaded")
    plan.apply()


def _choice(job: Job, node: cst.BaseExpression) -> cst.Call | None:
    """The call, if an expression is a choice and nothing else."""
    for call, name in called(job, node):
        plain = len(call.args) == _ARGUMENTS and not any(arg.keyword or arg.star for arg in call.args)
        if call is node and name == _CHOICE and plain:
            return call
    return None


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


def _may_begin_before(stmt: Store, choice: cst.Call, loops: Sequence[Loop], ranges: Sequence[Range]) -> bool:
    """A tensor is read under the condition from a place that is not known to lie behind its beginning."""
    guarded = {id(node) for arg in choice.args[1:] for node in nodes(arg)}
    loads = [load for load in stmt.value.loads if id(load.node) in guarded and load.buffer.memory is Memory.GM]
    known = {str(item.var): (item.start, item.start + item.extent - 1) for loop in loops for item in loop.ranges}
    bounds = Bounds(known)
    return any(_negative(low, bounds) for load in loads for low in _lows(load, ranges))


def _lows(load: Operand, ranges: Sequence[Range]) -> Iterator[Sym]:
    for dim in load.dims or ():
        yield dim.lo.substitute({str(item.var): item.start for item in ranges})


def _negative(low: Sym, bounds: Bounds) -> bool:
    """Sizes, block indices and loop variables are not negative, so that a sum of them is not."""
    return any(factor < 0 for _, factor in low.terms) and not bounds.is_not_negative(low)
