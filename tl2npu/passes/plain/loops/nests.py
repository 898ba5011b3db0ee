"""TL119, TL121: nests with parallel loops, in the two dimensions that the vectoriser takes.

The iterations of a parallel loop do not depend on each other. So its statements may run one after the other, each for
all iterations, and a serial loop inside may stand outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Let, Loop, Stmt, Store, walk
from tl2npu.passes.job import Job
from tl2npu.passes.names.assignments import needed
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import expression
from tl2npu.passes.writing.substitute import bound_names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

_INDEPENDENT = ("parallel", "vectorized")
_MOST_AXES = 2


def untangle(job: Job) -> None:
    """No loop inside a parallel loop, no parallel loop of more than two axes, no ``T.vectorized``."""
    until_settled(job, partial(_untangle_one, job))


def _untangle_one(job: Job) -> bool:
    loop = next((s for s in job.kernel.walk() if isinstance(s, Loop) and not s.via and _is_bad(s)), None)
    if loop is None:
        return False
    edits = Edits(job.file.index)
    new = _rewritten(job, loop)
    assert isinstance(loop.node, cst.For)
    first = new[0].with_changes(leading_lines=loop.node.leading_lines)
    edits.replace_many(loop.node, [first, *new[1:]])
    nested = any(isinstance(inner, Loop) for inner in walk(loop.body))
    text = "one parallel loop for each statement, serial loops outside" if nested else "a parallel loop of two axes"
    job.change("TL121" if nested else "TL119", loop.node, text)
    job.apply(edits)
    return True


def _is_bad(loop: Loop) -> bool:
    """A body that keeps something of its own for each iteration stays as it is."""
    if loop.kind not in _INDEPENDENT or any(isinstance(stmt, Alloc) for stmt in walk(loop.body)):
        return False
    return (
        loop.kind == "vectorized"
        or len(loop.ranges) > _MOST_AXES
        or any(isinstance(inner, Loop) for inner in walk(loop.body))
    )


def _rewritten(job: Job, loop: Loop) -> list[cst.For]:
    """The loops that do the same."""
    axes = _axes(loop)
    if any(isinstance(inner, Loop) for inner in walk(loop.body)):
        return _distributed(job, loop, axes)
    return _nest(job, axes, _node(loop).body)


Axes = list[tuple[str, str]]
"""Variable and extent of each axis, as text."""


def _node(loop: Loop) -> cst.For:
    assert isinstance(loop.node, cst.For)
    if not isinstance(loop.node.body, cst.IndentedBlock):
        raise Blocked("TL120", loop.node, "this loop has its body on the same line")
    return loop.node


def _axes(loop: Loop) -> Axes:
    found = []
    for item in loop.ranges:
        if not item.start.is_zero or item.stop_node is None:
            raise Blocked("TL120", loop.node, f"`{item.name}` does not start at 0")
        found.append((item.name, code(item.stop_node)))
    return found


def _nest(job: Job, axes: Axes, body: cst.BaseSuite) -> list[cst.For]:
    """Serial loops over the outer axes, a parallel one over the last two."""
    inner = axes[-_MOST_AXES:]
    result = _for(job, [name for name, _ in inner], f"T.Parallel({', '.join(size for _, size in inner)})", body)
    for name, size in reversed(axes[:-_MOST_AXES]):
        result = _for(job, [name], f"T.serial({size})", cst.IndentedBlock([result]))
    return [result]


def _for(job: Job, names: Sequence[str], call: str, body: cst.BaseSuite) -> cst.For:
    target = cst.parse_expression(", ".join(names))
    assert isinstance(target, cst.BaseAssignTargetExpression)
    return cst.For(target, expression(job, call, job.located.node), body)


def _distributed(job: Job, loop: Loop, axes: Axes) -> list[cst.For]:
    """One nest for each loop in the body and for each run of statements between loops."""
    result: list[cst.For] = []
    lets: list[cst.CSTNode] = []
    run: list[cst.CSTNode] = []
    written = _written(loop.body)
    own = {id(stmt.node): stmt for stmt in loop.body}
    for line in _node(loop).body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
        stmt = own.get(id(small))
        if isinstance(stmt, Loop):
            result += _flush(job, axes, lets, run)
            result += _inner(job, stmt, axes, lets)
        elif isinstance(stmt, Let) and not run:
            _refuse_changed(stmt, written)
            lets.append(line)
        elif isinstance(stmt, (Store, Branch)) and not any(isinstance(s, Loop) for s in walk([stmt])):
            run.append(line)
        else:
            raise Blocked("TL120", line, "this loop is under a condition inside a parallel loop")
    return [*result, *_flush(job, axes, lets, run)]


def _flush(job: Job, axes: Axes, lets: list[cst.CSTNode], run: list[cst.CSTNode]) -> list[cst.For]:
    if not run:
        return []
    body = cst.IndentedBlock([*needed(lets, run), *run])  # type: ignore[list-item]
    run.clear()
    return _nest(job, axes, body)


def _inner(job: Job, inner: Loop, axes: Axes, lets: list[cst.CSTNode]) -> list[cst.For]:
    names = {name for name, _ in axes} | {name for let in lets for name in bound_names(let)}
    for item in inner.ranges:
        for part in (item.start_node, item.stop_node):
            if part is not None and any(name.value in names for name in names_in(part)):
                raise Blocked("TL120", inner.node, "the bounds of this loop depend on the parallel loop around it")
    node = _node(inner)
    block = node.body
    assert isinstance(block, cst.IndentedBlock)
    body = block.with_changes(body=[*needed(lets, block.body), *block.body])
    if inner.kind in _INDEPENDENT:
        merged = _nest(job, [*axes, *_axes(inner)], body)
        return [merged[0].with_changes(leading_lines=node.leading_lines)]
    parallel = _nest(job, axes, body)
    return [node.with_changes(body=cst.IndentedBlock(parallel))]


def _written(body: Sequence[Stmt]) -> set[str]:
    return {stmt.target.buffer.name for stmt in walk(body) if isinstance(stmt, Store)}


def _refuse_changed(let: Let, written: set[str]) -> None:
    """A value that is worked out once may be worked out again only if nothing has changed in between."""
    if any(load.buffer.name in written for load in let.value.loads):
        raise Blocked("TL120", let.node, f"`{let.name}` is read before and used after its buffer changes")
