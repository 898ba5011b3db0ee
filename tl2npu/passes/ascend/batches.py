"""TL313: loops that one core runs one after the other over the same batch of tiles become one loop.

A pipeline by hand lets a core produce several tiles before the other one takes them: ``for i: product 1``, then
``for i: product 2``, with the other core's loops between. A tile that is handed over on chip must be taken before the
next one is made, so all that happens to tile ``i`` has to stand in one iteration. That is the same if the second loop
uses nothing of the first one but what belongs to ``i``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flow import Flow, writes_of
from tl2npu.kernel.handover import traffic
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Loop, Memory, Operand, ScopeBlock, Stmt, children, walk
from tl2npu.passes.ascend import sync
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def join(job: Job) -> set[str]:
    """Join every such pair of loops; the names of buffers that have one part for each tile of a batch.

    Flags between such loops go first; whoever calls this has proved that all of them may go.
    """
    found: set[str] = set()
    while True:
        flow = Flow(job.kernel)
        exchanged = {entry.tensor for entry in traffic(job.kernel).values() if entry.exchanged}
        pair = next((p for p in _pairs(job.kernel.body, False) if _fits(flow, p, exchanged)), None)
        if pair is None:
            return found
        if sync.has_flags(job.kernel):
            sync.remove_sync(job)
            continue
        found |= _private(pair)
        _write(job, *pair)


def _pairs(body: Sequence[Stmt], scoped: bool) -> list[tuple[Loop, Loop]]:
    """Loops that follow each other in the program of one core and run over the same range."""
    found: list[tuple[Loop, Loop]] = []
    working = [stmt for stmt in body if not sync.only_sync(stmt)]
    for first, second in pairwise(working):
        if scoped and isinstance(first, Loop) and isinstance(second, Loop) and _same_range(first, second):
            found.append((first, second))
    for stmt in body:
        for inner in children(stmt):
            found += _pairs(inner, scoped or isinstance(stmt, ScopeBlock))
    return found


def _same_range(first: Loop, second: Loop) -> bool:
    if len(first.ranges) != 1 or len(second.ranges) != 1 or first.kind != second.kind or first.kind == "parallel":
        return False
    mine, other = first.ranges[0], second.ranges[0]
    same = (mine.extent, mine.start, mine.step) == (other.extent, other.start, other.step)
    return same and not first.via and not second.via


def _fits(flow: Flow, pair: tuple[Loop, Loop], exchanged: set[Buffer]) -> bool:
    """Both loops hand tiles over by the number of the batch, and the second uses nothing else of the first."""
    if not all(any(_handed(stmt, loop, exchanged) for stmt in walk(loop.body)) for loop in pair):
        return False
    buffers = [{a.operand.buffer for s in walk(loop.body) for a in accesses(s)} for loop in pair]
    return all(_independent(flow, pair, buffer) for buffer in buffers[0] & buffers[1])


def _handed(stmt: Stmt, loop: Loop, exchanged: set[Buffer]) -> bool:
    if not isinstance(stmt, Copy):
        return False
    return any(o.buffer in exchanged and _own_part(o, loop) for o in (stmt.src, stmt.dst))


def _own_part(operand: Operand, loop: Loop) -> bool:
    """True if the operand is the part of a buffer that belongs to the iteration."""
    return any(dim.is_point and dim.lo == loop.ranges[0].var for dim in operand.dims or ())


def _independent(flow: Flow, pair: tuple[Loop, Loop], buffer: Buffer) -> bool:
    if not any(writes_of(loop.body, buffer) for loop in pair):
        return True
    operands = [
        [a.operand for s in walk(loop.body) for a in accesses(s) if a.operand.buffer is buffer] for loop in pair
    ]
    places = [_places(found, loop) for found, loop in zip(operands, pair, strict=True)]
    if places[0] & places[1]:
        return True
    return buffer.memory is not Memory.GM and all(_made_anew(flow, loop, buffer) for loop in pair)


def _places(operands: Sequence[Operand], loop: Loop) -> set[int]:
    """The axes in which every access takes the part of its own iteration."""
    found = [
        {i for i, dim in enumerate(o.dims or ()) if dim.is_point and dim.lo == loop.ranges[0].var} for o in operands
    ]
    return set.intersection(*found) if found else set()


def _made_anew(flow: Flow, loop: Loop, buffer: Buffer) -> bool:
    """Every read of the buffer in the loop sees a write of the same iteration."""
    for stmt in walk(loop.body):
        for access in accesses(stmt):
            if access.reads and access.operand.buffer is buffer and not _written(flow, loop, stmt, access.operand):
                return False
    return True


def _written(flow: Flow, loop: Loop, stmt: Stmt, operand: Operand) -> bool:
    for step in flow.before(stmt):
        if loop not in flow.parents[step.stmt]:
            return False
        if isinstance(step.stmt, (Loop, Branch)):
            continue
        for written in accesses(step.stmt):
            if not written.writes or written.reads or written.operand.buffer is not operand.buffer:
                continue
            if written.operand.is_whole or _same_part(written.operand, operand):
                return True
    return False


def _same_part(left: Operand, right: Operand) -> bool:
    if left.dims is None or right.dims is None or len(left.dims) != len(right.dims):
        return False
    return all(a.lo == b.lo and a.extent == b.extent for a, b in zip(left.dims, right.dims, strict=True))


def _private(pair: tuple[Loop, Loop]) -> set[str]:
    """On-chip buffers with a part for each iteration, which one tile can replace now."""
    found: set[str] = set()
    for loop in pair:
        for stmt in walk(loop.body):
            for access in accesses(stmt):
                buffer = access.operand.buffer
                if buffer.memory is not Memory.GM and _own_part(access.operand, loop):
                    found.add(buffer.name)
    return found


def _write(job: Job, first: Loop, second: Loop) -> None:
    assert isinstance(first.node, cst.For)
    assert isinstance(second.node, cst.For)
    assert isinstance(first.node.body, cst.IndentedBlock)
    assert isinstance(second.node.body, cst.IndentedBlock)
    mine, other = first.ranges[0].name, second.ranges[0].name
    known = {stmt.name: code(stmt.value.node) for stmt in first.body if isinstance(stmt, Let)}
    double = {id(s.node) for s in second.body if isinstance(s, Let) and known.get(s.name) == code(s.value.node)}
    double = double if mine == other else set()
    edits = Edits(job.file.index)
    if mine != other:
        for name in names_in(second.node.body):
            if name.value == other:
                edits.replace(name, cst.Name(mine, lpar=name.lpar, rpar=name.rpar))
        edits.replace(second.node.target, cst.Name(mine))
        job.change("TL313", second.node, f"loop variable `{other}` renamed to `{mine}`")
        job.apply(edits)
        return
    lines = [line for line in second.node.body.body if not _is_double(line, double)]
    lead = [line for line in second.node.leading_lines if line.comment is not None]
    if lines and lead:
        lines[0] = lines[0].with_changes(leading_lines=[*lead, *lines[0].leading_lines])  # type: ignore[attr-defined]
    block = first.node.body.with_changes(
        body=[*first.node.body.body, *lines], footer=[*first.node.body.footer, *second.node.body.footer]
    )
    around = job.file.index.parent(second.node)
    if lines and lead and isinstance(around, cst.IndentedBlock):  # the comments above go along, they do not stay behind
        whole = first.node.with_changes(body=block)
        kept = [whole if node is first.node else node for node in around.body if node is not second.node]
        edits.replace(around, around.with_changes(body=kept))
    else:
        edits.replace(first.node.body, block)
        edits.remove(second.node)
    job.change("TL313", second.node, "merged the loops over the tiles of a batch")
    job.apply(edits)


def _is_double(line: cst.BaseStatement, double: set[int]) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and all(id(small) in double for small in line.body)
