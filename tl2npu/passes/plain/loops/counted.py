"""TL120: ``while i < n`` that counts in equal steps, the usual form of a persistent block, as a serial loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of

_LOOPS: tuple[type[cst.CSTNode], ...] = (cst.Break, cst.Continue, cst.Return)
_BINDING: tuple[type[cst.CSTNode], ...] = (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.For)


@dataclass(frozen=True)
class _Count:
    """``name`` goes from ``start`` to below ``stop`` in steps of ``step``; ``before``: the lines that bind it."""

    name: str
    start: str
    stop: str
    step: str
    before: tuple[cst.BaseSmallStatement, ...]


def to_serial(job: Job) -> None:
    """Write such loops as ``for turn in T.serial(T.ceildiv(stop - start, step))``.

    A step that is no number is a size, and at least 1.
    """
    edits = Edits(job.file.index)
    names = Names(job)
    for loop in nodes_of(job.located.node.body, cst.While):
        found = _count(job, loop)
        if found is None:
            continue
        turn = names.fresh("turn")
        trips = f"T.ceildiv({found.stop} - {factor(found.start)}, {found.step})"
        head = f"for {turn} in T.serial({trips}):\n    {found.name} = {found.start} + {turn} * {factor(found.step)}\n"
        (written,) = parse(job, head, loop)
        assert isinstance(written, cst.For)
        body = written.body.with_changes(body=[*written.body.body, *loop.body.body[:-1]])
        edits.replace(loop, written.with_changes(body=body))
        for line in found.before:
            edits.remove(line)
        job.change("TL119", loop, f"`while {code(loop.test)}` -> `for {turn} in T.serial(...)`")
    job.apply(edits)


def _count(job: Job, loop: cst.While) -> _Count | None:
    test = loop.test
    if loop.orelse is not None or nodes_of(loop.body, *_LOOPS) or nodes_of(loop.body, cst.While):
        return None
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.left, cst.Name):
        return None
    name, last = test.left.value, _small(loop.body.body[-1])
    step = _step(loop, name, last)
    bounds = test.comparisons[0]
    if step is None or not isinstance(bounds.operator, cst.LessThan):
        return None
    before = _before(job, loop, name)
    start = _value(before[-1]) if before else None
    if start is None:
        return None
    inside = {id(node) for node in names_in(loop)} | {id(node) for line in before for node in names_in(line)}
    if any(n.value == name and id(n) not in inside for n in names_in(job.located.node.body)):
        return None
    fixed = {n.value for part in (start, bounds.comparator, step) for n in names_in(part)}
    if fixed & (_bound(loop.body) | {name}):
        return None
    return _Count(name, code(start), code(bounds.comparator), code(step), tuple(before))


def _small(line: cst.CSTNode) -> cst.CSTNode:
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line


def _value(statement: cst.CSTNode) -> cst.BaseExpression | None:
    return statement.value if isinstance(statement, cst.Assign) else None


def _targets(statement: cst.CSTNode) -> set[str]:
    if isinstance(statement, cst.Assign):
        return {name.value for target in statement.targets for name in _plain(target.target)}
    return {name.value for name in _plain(getattr(statement, "target", statement))}


def _plain(target: cst.CSTNode) -> list[cst.Name]:
    if isinstance(target, cst.Name):
        return [target]
    return list(names_in(target)) if isinstance(target, (cst.Tuple, cst.List)) else []


def _bound(body: cst.BaseSuite) -> set[str]:
    return {name for statement in nodes_of(body, *_BINDING) for name in _targets(statement)}


def _step(loop: cst.While, name: str, last: cst.CSTNode) -> cst.BaseExpression | None:
    """What the last statement adds: ``i += s``, ``i = i + s``, or ``i = current + s`` with ``current = i`` above."""
    binding = [s for s in nodes_of(loop.body, *_BINDING) if name in _targets(s)]
    if binding != [last]:
        return None
    if isinstance(last, cst.AugAssign) and isinstance(last.operator, cst.AddAssign):
        step: cst.BaseExpression = last.value
    elif isinstance(last, cst.Assign) and isinstance(last.value, cst.BinaryOperation):
        sum_ = last.value
        same = {name, *_copies(loop, name)}
        sides = [side for side in (sum_.left, sum_.right) if isinstance(side, cst.Name) and side.value in same]
        if not isinstance(sum_.operator, cst.Add) or len(sides) != 1:
            return None
        step = sum_.right if sum_.left is sides[0] else sum_.left
    else:
        return None
    number = isinstance(step, cst.Integer) and int(step.value, 0) > 0
    return step if number or isinstance(step, (cst.Name, cst.Attribute)) else None


def _copies(loop: cst.While, name: str) -> set[str]:
    """Names that are given the counter, once, in the loop's own block."""
    found: set[str] = set()
    for line in loop.body.body:
        statement = _small(line)
        if isinstance(statement, cst.Assign) and code(statement.value) == name:
            found |= _targets(statement)
    often = [t for statement in nodes_of(loop.body, *_BINDING) for t in _targets(statement)]
    return {other for other in found if often.count(other) == 1}


def _before(job: Job, loop: cst.While, name: str) -> list[cst.BaseSmallStatement]:
    """The statements of the same block that bind the counter; the last one gives it its start."""
    block = job.file.index.parent(loop)
    lines: Sequence[cst.CSTNode] = block.body if isinstance(block, cst.IndentedBlock) else ()
    found: list[cst.BaseSmallStatement] = []
    for line in lines:
        if line is loop:
            break
        statement = _small(line)
        if isinstance(statement, cst.Assign) and _targets(statement) == {name}:
            found.append(statement)
        elif name in mentioned(line):
            return []
    allocated = [s for s in found if isinstance(s, cst.Assign) and "alloc_var" in code(s.value)]
    return found if len(found) - len(allocated) == 1 and found[-1] not in allocated else []
