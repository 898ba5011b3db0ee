"""TL622: a tile that only one arm of a condition of Python reads is made under that condition.

Masks are the usual case: ``if is_causal`` decides which of them there is. The compiler has no memory for a tile that
nothing touches, so that a kernel without a mask does not pay for it. Tiles of contrary arms are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, takewhile

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Kernel, Loop, Memory, Op, Stmt, Store, walk, walk_with_parents
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in

Arms = tuple[tuple[str, bool], ...]
"""The conditions around a statement, outermost first, and which arm of each it stands in."""


def make_where_read(job: Job, authors: frozenset[str]) -> None:
    """Of the tiles that passes made; ``authors``: the names that they found."""
    made = _made(job, authors)
    edits = Edits(job.file.index)
    for outermost, run in groupby(job.kernel.body, key=lambda stmt: made[id(stmt)][0][0] if id(stmt) in made else None):
        if outermost is not None:
            _put_under(job, edits, list(run), made)
    job.apply(edits)
    _share(job, authors)


def _share(job: Job, authors: frozenset[str]) -> None:
    """One tile for those of one shape and type of which Python takes one; what the cores exchange stays apart."""
    arms, users = _arms(job), dict[Buffer, list[Arms]]()
    exchanged: set[Buffer] = set()
    for stmt in job.kernel.walk():
        touched = {access.operand.buffer for access in accesses(stmt)}
        if not {buffer.memory for buffer in touched} <= {Memory.UB, Memory.GM}:
            exchanged |= touched
        for buffer in touched:
            users.setdefault(buffer, []).append(arms.get(id(stmt), ()))
    kept: dict[Buffer, list[tuple[Buffer, Arms]]] = {}
    first = {item: item not in job.kernel.body for item in job.kernel.walk() if isinstance(item, Alloc)}
    for item in sorted(first, key=lambda item: first[item]):  # those that all statements see come first
        buffer = item.buffer
        if buffer.name not in authors and buffer in users.keys() - exchanged and buffer.statement is not None:
            mine = _common(users[buffer])
            other = next((one for one in kept if _is_like(one, buffer) and _are_contrary(kept[one], mine)), buffer)
            if other is not buffer or not first[item]:
                kept.setdefault(other, []).append((buffer, mine))
    edits, names, new, gone = Edits(job.file.index), Names(job), dict[str, str](), set[int]()
    for group in (group for group in kept.values() if len(group) > 1):
        words = zip(*(buffer.name.split("_") for buffer, _ in group), strict=False)
        stem = "_".join(word[0] for word in takewhile(lambda word: len(set(word)) == 1, words))
        taken = {buffer.name for buffer, _ in group}
        name = min(taken) if not stem or stem in taken else names.fresh(stem, f"{stem}_tile")
        new |= {buffer.name: name for buffer, _ in group}
        for buffer, _ in group[1:]:
            assert buffer.statement is not None
            edits.remove(buffer.statement)
            gone |= {id(node) for node in names_in(buffer.statement)}
            job.change("TL622", buffer.statement, f"`{name}` serves in both arms")
    for node in names_in(job.located.node):
        if node.value in new and id(node) not in gone:
            edits.replace(node, node.with_changes(value=new[node.value]))
    job.apply(edits)


def _is_like(one: Buffer, other: Buffer) -> bool:
    return (one.shape, one.dtype, one.outside, one.memory) == (other.shape, other.dtype, other.outside, other.memory)


def _are_contrary(others: Sequence[tuple[Buffer, Arms]], mine: Arms) -> bool:
    """Whether Python leaves all of the others out where it takes these arms."""
    return all(any(test in dict(mine) and dict(mine)[test] is not arm for test, arm in arms) for _, arms in others)


def _made(job: Job, authors: frozenset[str]) -> dict[int, Arms]:
    """The statements of the launch that make such a tile, each with the arms that read it."""
    kernel = job.kernel
    arms = _arms(job)
    found: dict[int, Arms] = {}
    own = [b for b in kernel.buffers.values() if b.memory is Memory.UB and b.statement is not None]
    for buffer in reversed([buffer for buffer in own if buffer.name not in authors]):  # what is made of others first
        makers, readers = _parted(kernel, buffer)
        common = _common([arms.get(id(stmt), ()) for stmt in readers])
        if makers and common:
            found |= {id(stmt): common for stmt in makers}
            arms |= {id(stmt): common for stmt in walk(makers)}
    return found


def _common(arms: Sequence[Arms]) -> Arms:
    """The arms that all statements stand in."""
    same = takewhile(lambda level: len(set(level)) == 1, zip(*arms, strict=False))
    return tuple(level[0] for level in same)


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


def _arms(job: Job) -> dict[int, Arms]:
    """The arms around each statement that Python chooses, by names that the kernel does not bind."""
    bound = assigned_names(job.located.node.body)
    found: dict[int, Arms] = {}
    for stmt, parents in walk_with_parents(job.kernel.body):
        arms: list[tuple[str, bool]] = []
        for around, inner in pairwise((*parents, stmt)):
            if isinstance(around, Branch) and isinstance(around.node, cst.If) and job.late.python_decides(around):
                test = around.node.test
                if bound.isdisjoint(name.value for name in names_in(test)):
                    arms.append((code(test), any(one is inner for one in around.then)))
        if arms:
            found[id(stmt)] = tuple(arms)
    return found


def _put_under(job: Job, edits: Edits, run: Sequence[Stmt], made: dict[int, Arms]) -> None:
    """Statements that stand behind one another, of the arms of one condition."""
    edits.replace_many(run[0].node, _under([(made[id(stmt)], stmt) for stmt in run]))
    for stmt in run[1:]:
        edits.remove(stmt.node)
    names = sorted({a.operand.buffer.name for stmt in run for one in walk([stmt]) for a in accesses(one) if a.writes})
    shown = " and ".join(f"`{name}`" for name in names)
    asked = made[id(run[0])][0][0]
    job.change("TL622", run[0].node, f"made {shown} where `{asked}` asks for it")


def _under(stmts: Sequence[tuple[Arms, Stmt]]) -> list[cst.BaseStatement]:
    """Statements in ``if``, ``elif`` and ``else``, in their order."""
    lines: list[cst.BaseStatement] = []
    for outermost, run in groupby(stmts, key=lambda item: item[0][0][0] if item[0] else None):
        inside = list(run)
        if outermost is None:
            lines += _lines([stmt for _, stmt in inside])
            continue
        then, orelse = (
            _under([(arms[1:], stmt) for arms, stmt in inside if arms[0][1] is taken]) for taken in (True, False)
        )
        test = cst.parse_expression(outermost)
        if not then:
            shown = outermost if isinstance(test, cst.Name) else f"({outermost})"
            then, orelse, test = orelse, [], cst.parse_expression(f"not {shown}")
        other: cst.If | cst.Else | None = cst.Else(cst.IndentedBlock(orelse)) if orelse else None
        if len(orelse) == 1 and isinstance(orelse[0], cst.If):
            other = orelse[0]
        lines.append(cst.If(test, cst.IndentedBlock(then), other))
    return lines


def _lines(stmts: Sequence[Stmt]) -> Iterator[cst.BaseStatement]:
    for stmt in stmts:
        node = stmt.node
        if isinstance(node, cst.BaseSmallStatement):
            yield cst.SimpleStatementLine([node])
        else:
            assert isinstance(node, cst.BaseStatement)
            yield node
