"""TL612: a pipelined loop over both cores stays one, so that the cube core works on the next turn meanwhile.

The compiler takes a turn apart (:mod:`tl2npu.kernel.stages`). What that asks for is made here: a tile that keeps its
value from turn to turn is used in one part only, so uses in earlier parts move down to the last one, and a vector whose
rows a part reads is copied to one of its own. Turns have to come out even in stages (g9_rem32), which a condition on
the sizes says: ``num_stages=2 if seq_len % (2 * block_N) == 0 else 0``; without stages it is a plain loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Loop, Memory, Side, Stmt, walk
from tl2npu.kernel.regions import substitute
from tl2npu.kernel.stages import Shared, flat, is_lost, landing_buffers, parts, shared
from tl2npu.kernel.symbolic import Sym, var
from tl2npu.kernel.turns import Turns, TurnsReader, stages_node
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.passes.writing.tiles import Tiles
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of


def keep(job: Job) -> int | None:
    """Keep the first pipelined loop over both cores that can be proved right in stages; its number among such loops,
    None if there is none."""
    for number, loop in enumerate(_loops(job)):
        turns, stages = _reader(job).of(loop), _stages(job, loop)
        if turns is None or stages is None or not _is_taken_apart(job, loop):
            continue
        file, edited = job.file, list(job.edited)
        if _sink(job, loop) and _copy_rows(job, _loops(job)[number]) and _is_right(job, _loops(job)[number], turns):
            _write(job, _loops(job)[number], turns, stages)
            return number
        job.restore(file, edited)
    return None


def _loops(job: Job) -> list[Loop]:
    return [s for s in job.kernel.walk() if isinstance(s, Loop) and s.kind == "pipelined" and s.call is not None]


def _reader(job: Job) -> TurnsReader:
    return TurnsReader(job.kernel, job.file.evaluator, job.late)


def _stages(job: Job, loop: Loop) -> cst.BaseExpression | None:
    """The author's number of stages, if it is more than one or may be."""
    node = stages_node(loop)
    if node is None or loop.env is None or not _reader(job).is_decided(node, loop.env):
        return None
    known = job.file.evaluator.sym(node, loop.env).constant
    return None if known is not None and known < 2 else node


def _is_taken_apart(job: Job, loop: Loop) -> bool:
    """Tiles go both ways between the cores, and the compiler keeps all statements."""
    memories = {buffer.memory for buffer in landing_buffers(parts(loop.body))}
    if memories != {Memory.UB, Memory.L1} or any(part.side is Side.BOTH for part in parts(loop.body)):
        return False
    if any(isinstance(inner, Loop) and inner.kind == "pipelined" for inner in walk(loop.body)):
        return False
    return not any(
        (isinstance(stmt, Let) and is_lost(stmt, job.kernel))
        or (isinstance(stmt, Branch) and not job.late.python_decides(stmt))
        for stmt in flat(loop.body)
    )


def _buffers(stmts: Sequence[Stmt], *, written: bool = False) -> set[Buffer]:
    return {a.operand.buffer for s in walk(list(stmts)) for a in accesses(s) if a.writes or not written}


def _is_state(one: Shared) -> bool:
    return one.written and (one.carried or not one.inside)


# uses of a value that the next turn needs ----------------------------------------------------------------------------


def _sink(job: Job, loop: Loop) -> bool:
    """Move statements so that every tile that lives on has its uses in one part; False if one cannot move."""
    body = list(flat(loop.body))
    if any(stmt not in loop.body for stmt in body):
        return not any(_is_state(one) for one in shared(parts(body), job.kernel))
    found = parts(loop.body)
    moves: list[tuple[Stmt, Stmt]] = []
    for one in filter(_is_state, shared(found, job.kernel)):
        target = next(stmt for stmt in found[one.users[-1]].body if one.buffer in _buffers([stmt]))
        early = [s for number in one.users[:-1] for s in found[number].body if one.buffer in _buffers([s])]
        if any(found[number].side is not found[one.users[-1]].side for number in one.users):
            return False
        for stmt in early:
            between = loop.body[loop.body.index(stmt) + 1 : loop.body.index(target)]
            if any(_depend(stmt, other) for other in between if other not in early):
                return False
            moves.append((stmt, target))
    if not moves:
        return True
    edits = Edits(job.file.index)
    for target in dict.fromkeys(target for _, target in moves):
        moved = [stmt.node for stmt, to in moves if to is target]
        for node in moved:
            edits.remove(node)
        edits.replace_many(target.node, [*moved, target.node])
    job.apply(edits)
    return True


def _depend(left: Stmt, right: Stmt) -> bool:
    """Whether two statements may not change places."""
    if isinstance(right, Let):
        return False
    wrote, writes = _buffers([left], written=True), _buffers([right], written=True)
    return bool(wrote & _buffers([right]) or writes & _buffers([left]))


# rows of a vector ----------------------------------------------------------------------------------------------------


def _copy_rows(job: Job, loop: Loop) -> bool:
    """Give every part that reads rows of a shared vector one of its own; False where that is not enough."""
    found = parts(loop.body)
    edits, tiles = Edits(job.file.index), Tiles(job, Names(job))
    before: list[cst.CSTNode] = []
    for one in shared(found, job.kernel):
        for number in one.users:
            if not any(use.element for use in found[number].uses if use.buffer is one.buffer):
                continue
            mine = [stmt for stmt in found[number].body if one.buffer in _buffers([stmt])]
            changed = one.buffer in _buffers(mine, written=True)
            if changed or len(one.buffer.shape) != 1 or not isinstance(one.buffer.node, cst.Call):
                return False
            if one.buffer.statement is None or any(stmt not in loop.body for stmt in mine):
                return False
            name = tiles.like(one.buffer, f"{one.buffer.name}_now")
            copy = parse(job, f"T.copy({one.buffer.name}, {name})", mine[0].node)
            if not one.written:  # the same in every turn
                before.extend(copy)
            for stmt in mine:
                first = copy if one.written and stmt is mine[0] else []
                edits.replace_many(stmt.node, [*first, _renamed(stmt.node, one.buffer.name, name)])
    if before:
        edits.replace_many(loop.node, [*before, loop.node])
    tiles.commit(edits)
    job.apply(edits)
    return True


def _renamed(node: cst.CSTNode, old: str, new: str) -> cst.CSTNode:
    found = {id(name): cst.Name(new) for name in nodes_of(node, cst.Name) if name.value == old}
    return substitute(node, found)


# the proof, and the loop ---------------------------------------------------------------------------------------------


def _is_right(job: Job, loop: Loop, turns: Turns) -> bool:
    """Nothing is left of what the moves and copies are for, and versions of tiles in L1 are filled to their ends."""
    found = parts(loop.body)
    for one in shared(found, job.kernel):
        if _is_state(one) or any(
            use.element for number in one.users for use in found[number].uses if use.buffer is one.buffer
        ):
            return False
        if one.buffer.memory is Memory.L1 and one.inside:
            loads = [s for s in walk(loop.body) if isinstance(s, Copy) and s.dst.buffer is one.buffer]
            if not all(_fills(job, load, loop, turns) for load in loads if load.src.buffer.memory is Memory.GM):
                return False
    return True


def _fills(job: Job, load: Copy, loop: Loop, turns: Turns) -> bool:
    """The last two axes of the source hold all of the region in every turn, under the condition on the sizes."""
    tile = load.dst.buffer.shape if load.dst.dims is None else [dim.extent for dim in load.dst.dims]
    extents = [extent for extent in tile if extent is not None]
    source = load.src
    if source.dims is None or len(extents) != len(tile):
        return source.dims is None
    bound = _sizes(job, loop, turns)
    pairs = list(zip(source.dims, source.buffer.shape, strict=False))[-2:]
    for (dim, size), extent in zip(reversed(pairs), reversed(extents), strict=False):
        last = (size - dim.lo - (dim.extent or extent)).substitute(bound)
        if last.constant is None or last.constant < 0:
            return False
    return True


def _sizes(job: Job, loop: Loop, turns: Turns) -> dict[str, Sym]:
    """The last turn, and the size that the turns divide as a multiple of their tile."""
    count = var(f"{loop.ranges[0].name} turns")
    counted = {str(loop.ranges[0].var): count - 1}
    if turns.tile is None:
        return counted
    size, tile = (job.file.evaluator.sym(node, turns.env) for node in (turns.size, turns.tile))
    names = size.variables()
    return {**counted, str(size): count * tile} if names == {str(size)} else counted


def _write(job: Job, loop: Loop, turns: Turns, stages: cst.BaseExpression) -> None:
    assert loop.call is not None
    text = code(stages)
    known = job.file.evaluator.sym(stages, turns.env).constant
    count = job.file.evaluator.sym(turns.size, turns.env).constant if turns.tile is None and not turns.tests else None
    tests = [] if known is not None else [f"{factor(text)} > 1"]
    if count is None or known is None or count % known:
        by = factor(text) if turns.tile is None else f"({factor(text)} * {factor(code(turns.tile))})"
        tests += [*turns.tests, f"{factor(code(turns.size))} % {by} == 0"]
        text = f"{text} if {' and '.join(tests)} else 0"
    arguments = [code(arg.value) for arg in loop.call.args if arg.keyword is None]
    head = f"T.Pipelined({', '.join(arguments)}, num_stages={text})"
    edits = Edits(job.file.index)
    edits.replace(loop.call, expression(job, head, loop.call))
    job.apply(edits)
    shown = f" where {' and '.join(tests)}" if tests else ""
    job.change("TL612", loop.node, f"keeps stages{shown}: the cube core works ahead of the vector cores")
