"""TL119: parallel loops whose variables are one index in disguise.

``for i, j in T.Parallel(threads, lanes)`` with ``i * lanes + j`` for every use spreads a vector over the threads of a
GPU; the vector itself is one axis.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, Store, walk
from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.passes.job import Job
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.passes.writing.statements import expression, factor
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in

_PARTS = (cst.Add, cst.Subtract, cst.Multiply)


def flatten(job: Job) -> None:
    """One loop variable where only the position in row-major order is used, none for an axis of one element."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "parallel" and not stmt.via and len(stmt.ranges) > 1:
            _without_units(job, stmt, edits)
    job.apply(edits)
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop) and stmt.kind == "parallel" and not stmt.via and len(stmt.ranges) > 1:
            _flatten(job, stmt, edits)
    job.apply(edits)


def _without_units(job: Job, loop: Loop, edits: Edits) -> None:
    """``for i, j in T.Parallel(1, n)`` that also stores to ``v[j]`` is a loop over ``j``."""
    assert isinstance(loop.node, cst.For)
    assert loop.call is not None
    units = {item.name for item in loop.ranges if item.start.is_zero and item.extent == const(1)}
    stores = [stmt.target.node for stmt in walk(loop.body) if isinstance(stmt, Store)]
    units = {name for name in units if any(name not in mentioned(node) for node in stores)}
    positional = [arg for arg in loop.call.args if arg.keyword is None]
    left = [item for item in loop.ranges if item.name not in units]
    if not units or not left or len(positional) != len(loop.ranges):
        return
    for use in names_in(loop.node.body):
        if use.value in units:
            edits.replace(use, cst.Integer("0"))
    names = ", ".join(item.name for item in left)
    edits.replace(loop.node.target, cst.parse_expression(names))
    for arg, item in zip(positional, loop.ranges, strict=True):
        if item.name in units:
            edits.remove(arg)
    job.change("TL119", loop.node, f"no loop over the one value of {', '.join(f'`{name}`' for name in sorted(units))}")


def _flatten(job: Job, loop: Loop, edits: Edits) -> None:
    assert isinstance(loop.node, cst.For)
    assert loop.call is not None
    inner = list(walk(loop.body))
    names = [item.name for item in loop.ranges]
    plain = all(item.start.is_zero and item.start_node is None and item.stop_node is not None for item in loop.ranges)
    if not inner or not plain or any(isinstance(stmt, Loop) for stmt in inner):
        return
    name, env = names[0], inner[0].env
    position = _position(loop)
    new: list[tuple[cst.BaseExpression, str]] = []
    for use in names_in(loop.node.body):
        if use.value not in names:
            continue
        whole = _arithmetic(job, use)
        if any(whole is node for node, _ in new):
            continue
        text = _as_one(job, whole, env, loop, position)
        if text is None:
            return
        new.append((whole, text))
    if not new:
        return
    for node, text in new:
        edits.replace(node, expression(job, text, node))
    extents = [item.stop_node for item in loop.ranges]
    size = " * ".join(factor(code(node)) for node in extents if node is not None)
    edits.replace(loop.node.target, cst.Name(name))
    positional = [arg for arg in loop.call.args if arg.keyword is None]
    edits.replace(positional[0], positional[0].with_changes(value=cst.parse_expression(size)))
    for arg in positional[1:]:
        edits.remove(arg)
    job.change("TL119", loop.node, f"`{', '.join(names)}` are the digits of one index: one axis")


def _position(loop: Loop) -> Sym:
    """Row-major position of an iteration."""
    found = const(0)
    for item in loop.ranges:
        found = found * item.extent + item.var
    return found


def _arithmetic(job: Job, use: cst.Name) -> cst.BaseExpression:
    """The largest sum of products that a name stands in."""
    node: cst.BaseExpression = use
    while True:
        above = job.file.index.parent(node)
        if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, _PARTS):
            return node
        node = above


def _as_one(job: Job, node: cst.BaseExpression, env: Env, loop: Loop, position: Sym) -> str | None:
    """The text of an expression with the position as one variable; None if it is not made of the position alone."""
    start = {name: const(0) for item in loop.ranges for name in item.var.variables()}
    evaluator = job.file.evaluator
    whole = evaluator.sym(node, env)
    if whole - whole.substitute(start) != position:
        return None
    spelled = evaluator.sym(node, Env()).substitute({item.name: const(0) for item in loop.ranges})
    try:
        return render(spelled + var(loop.ranges[0].name))
    except Unrenderable:
        return None
