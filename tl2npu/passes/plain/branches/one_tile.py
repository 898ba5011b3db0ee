"""TL119: two tiles of one shape and type, of which a condition of Python allocates one or the other, are one tile.

``p = a if deep else b`` names whichever there is. Only one of them exists in a kernel that is compiled, so that a
single allocation serves both; what the arms then say alike is said once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Memory, Stmt
from tl2npu.passes.job import Job
from tl2npu.passes.plain.branches.tiles import without
from tl2npu.passes.rounds import until_settled
from tl2npu.source.edits import Edits
from tl2npu.source.tree import mentioned, names_in, nodes_of


@dataclass(frozen=True, eq=False)
class _Pair:
    """The allocations in the arms of ``branch``."""

    branch: Branch
    true: Alloc
    false: Alloc

    @property
    def names(self) -> tuple[str, str]:
        return self.true.buffer.name, self.false.buffer.name


def join(job: Job) -> None:
    """Allocate one tile for each such pair."""

    def step() -> bool:
        pair = next(_pairs(job), None)
        if pair is not None:
            _write(job, pair)
        return pair is not None

    until_settled(job, step)


def _pairs(job: Job) -> Iterator[_Pair]:
    """Two tiles that one name stands for, each used where its own arm of the question is taken only."""
    body = job.located.node.body
    wanted = set(_chosen(body))
    if not wanted:
        return
    for branch in job.kernel.walk():
        if not isinstance(branch, Branch) or branch.via or not isinstance(branch.node, cst.If):
            continue
        if isinstance(job.file.index.parent(branch.node), cst.If):
            continue
        if branch.cond.loads or job.late.is_late(branch.cond.sym):
            continue
        asked = mentioned(branch.node.test)
        for true in _allocations(branch.then):
            for false in _allocations(branch.orelse):
                pair = _Pair(branch, true, false)
                one, other = true.buffer, false.buffer
                same = (one.shape, one.dtype) == (other.shape, other.dtype) and one.memory is not Memory.VAR
                if same and pair.names in wanted and not asked & assigned_names(body) and _is_apart(job, pair):
                    yield pair


def _allocations(arm: list[Stmt]) -> list[Alloc]:
    return [stmt for stmt in arm if isinstance(stmt, Alloc) and not stmt.via and "#" not in stmt.buffer.name]


def _chosen(body: cst.BaseSuite) -> Iterator[tuple[str, str]]:
    """The names of two values, of which one name gets the first or the second."""
    for node in nodes_of(body, cst.IfExp):
        if isinstance(node.body, cst.Name) and isinstance(node.orelse, cst.Name):
            yield node.body.value, node.orelse.value
    for branch in nodes_of(body, cst.If):
        if isinstance(branch.orelse, cst.Else):
            true, false = _aliases(branch.body), _aliases(branch.orelse.body)
            yield from ((true[name], false[name]) for name in true.keys() & false.keys())


def _aliases(arm: cst.BaseSuite) -> dict[str, str]:
    return {
        name: small.value.value
        for line in arm.body
        if isinstance(line, cst.SimpleStatementLine)
        for small in line.body
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Name)
        for name in assigned_names(small)
    }


def _is_apart(job: Job, pair: _Pair) -> bool:
    """Whether every use of either tile stands where the condition has its value."""
    assert isinstance(pair.branch.node, cst.If)
    test, index = code(pair.branch.node.test), job.file.index
    for name in names_in(job.located.node.body):
        if name.value not in pair.names:
            continue
        inner: cst.CSTNode = name
        for above in index.ancestors(name):
            if isinstance(above, (cst.If, cst.IfExp)) and code(above.test) == test and inner is not above.test:
                if (inner is above.body) != (name.value == pair.names[0]):
                    return False
                break
            inner = above
        else:
            return False
    return True


def _write(job: Job, pair: _Pair) -> None:
    """One name, and one arm for two that say the same; where they differ, the allocation stands in front of them."""
    assert isinstance(pair.branch.node, cst.If)
    test, (kept, gone) = code(pair.branch.node.test), pair.names
    line, other = job.file.index.parent(pair.true.node), job.file.index.parent(pair.false.node)
    assert isinstance(line, cst.SimpleStatementLine)
    assert isinstance(other, cst.SimpleStatementLine)
    job.change("TL119", pair.branch.node, f"one tile for `{kept}` and `{gone}`: `{test}` decides which there is")
    edits = Edits(job.file.index)
    inside = {id(name) for name in names_in(other)}
    for name in names_in(job.located.node.body):
        if name.value == gone and id(name) not in inside:
            edits.replace(name, name.with_changes(value=kept))
    edits.replace(other, line.deep_clone())
    job.apply(edits)
    edits = Edits(job.file.index)
    for choice in nodes_of(job.located.node.body, cst.IfExp):
        if code(choice.test) == test and choice.body.deep_equals(choice.orelse):
            edits.replace(choice, choice.body)
    for node in nodes_of(job.located.node.body, cst.If):
        if code(node.test) == test and isinstance(node.orelse, cst.Else):
            arms = (*node.body.body, *node.orelse.body.body)
            lines = [part for part in arms if isinstance(part, cst.SimpleStatementLine) and _allocates(part, kept)]
            if _says(node) == _says(node.orelse):
                edits.replace_many(node, list(body_of(node)))
            elif lines:
                rest = without(node, lines)
                edits.replace_many(node, [lines[0], *([] if rest is None else [rest])])
    job.apply(edits)


def _allocates(part: cst.SimpleStatementLine, name: str) -> bool:
    """Whether a line of an arm is the allocation: no other line of the arms gives the name a value."""
    return any(name in assigned_names(small) for small in part.body)


def _says(block: cst.If | cst.Else) -> list[str]:
    return [code(part.with_changes(leading_lines=())) for part in body_of(block)]
