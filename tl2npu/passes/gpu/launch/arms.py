"""TL622: a tile that only one arm of a condition of Python reads is made under that condition.

Masks are the usual case: ``if is_causal`` decides which of them there is. The compiler has no memory for a tile that
nothing touches, so that a kernel without a mask does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Kernel, Loop, Memory, Op, Stmt, Store, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


@dataclass(frozen=True)
class _Arm:
    """``branch``: the first one with this ``test``."""

    test: str
    taken: bool
    branch: Branch


def make_where_read(job: Job, authors: frozenset[str]) -> None:
    """Of the tiles that passes made; ``authors``: the names that they found."""
    made = _made(job, authors)
    edits = Edits(job.file.index)
    for test, run in groupby(job.kernel.body, key=lambda stmt: made[id(stmt)].test if id(stmt) in made else None):
        if test is not None:
            _put_under(job, edits, list(run), made)
    if edits:
        job.apply(edits)


def _made(job: Job, authors: frozenset[str]) -> dict[int, _Arm]:
    """The statements of the launch that make such a tile, each with the arm that reads it."""
    kernel = job.kernel
    arms = _arms(job)
    found: dict[int, _Arm] = {}
    own = [b for b in kernel.buffers.values() if b.memory is Memory.UB and b.statement is not None]
    for buffer in reversed([buffer for buffer in own if buffer.name not in authors]):  # what is made of others first
        makers, readers = _parted(kernel, buffer)
        asked = {(arm.test, arm.taken) if (arm := arms.get(id(stmt))) else None for stmt in readers}
        if makers and len(asked) == 1 and None not in asked:
            arm = arms[id(readers[0])]
            found |= {id(stmt): arm for stmt in makers}
            arms |= {id(stmt): arm for stmt in walk(makers)}
    return found


def _parted(kernel: Kernel, buffer: Buffer) -> tuple[list[Stmt], list[Stmt]]:
    """The statements of the launch that only make a tile, and those behind them, at any depth, that use it."""
    makers: list[Stmt] = []
    users: list[Stmt] = []
    for stmt in kernel.body:
        inside = [one for one in walk([stmt]) if any(a.operand.buffer is buffer for a in accesses(one))]
        if not inside or isinstance(stmt, Alloc):
            continue
        makes = isinstance(stmt, (Op, Loop, Store)) and not stmt.via
        written = {a.operand.buffer for one in walk([stmt]) for a in accesses(one) if a.writes}
        if makes and not users and written == {buffer}:
            makers.append(stmt)
        else:
            users += inside
    return makers, users


def _arms(job: Job) -> dict[int, _Arm]:
    """The outermost arm around each statement that Python chooses, by names that the kernel does not bind."""
    bound = assigned_names(job.located.node.body)
    first: dict[str, Branch] = {}
    found: dict[int, _Arm] = {}
    for stmt, parents in walk_with_parents(job.kernel.body):
        for around, inner in pairwise((*parents, stmt)):
            if isinstance(around, Branch) and isinstance(around.node, cst.If) and job.late.python_decides(around):
                test = around.node.test
                if bound.isdisjoint(name.value for name in names_in(test)):
                    branch = first.setdefault(code(test), around)
                    found[id(stmt)] = _Arm(code(test), any(one is inner for one in around.then), branch)
                    break
    return found


def _put_under(job: Job, edits: Edits, run: Sequence[Stmt], made: dict[int, _Arm]) -> None:
    """Statements that stand behind one another, of the arms of one condition."""
    arm = made[id(run[0])]
    assert isinstance(arm.branch.node, cst.If)
    then, orelse = (list(_lines([stmt for stmt in run if made[id(stmt)].taken is taken])) for taken in (True, False))
    test, other = arm.branch.node.test.deep_clone(), None
    if not then:
        shown = code(test) if isinstance(test, cst.Name) else f"({code(test)})"
        then, orelse, test = orelse, [], cst.parse_expression(f"not {shown}")
    if orelse:
        other = cst.Else(cst.IndentedBlock(orelse))
    edits.replace_many(run[0].node, [cst.If(test, cst.IndentedBlock(then), other)])
    for stmt in run[1:]:
        edits.remove(stmt.node)
    names = sorted({a.operand.buffer.name for stmt in run for one in walk([stmt]) for a in accesses(one) if a.writes})
    shown = " and ".join(f"`{name}`" for name in names)
    job.change("TL622", arm.branch.node, f"made {shown} where `{arm.test}` asks for it")


def _lines(stmts: Sequence[Stmt]) -> Iterator[cst.BaseStatement]:
    for stmt in stmts:
        node = stmt.node
        if isinstance(node, cst.BaseSmallStatement):
            yield cst.SimpleStatementLine([node])
        else:
            assert isinstance(node, cst.BaseStatement)
            yield node
