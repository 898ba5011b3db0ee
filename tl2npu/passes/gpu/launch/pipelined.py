"""TL139: ``T.Pipelined`` stays where the cube core alone runs the loop, or by TL612; elsewhere it becomes ``T.serial``.

Measured: a pure cube loop is right with any number of stages (g4_init_pipe*) if its loads fill their tiles: the rest
of a tile is cleared in the first version only (``codegen_ascend.cc``, ``need_clear``). A loop with hand-overs loses the
iterations behind the last whole group of stages (g9_rem32), and needs bounds that the compiler knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import libcst as cst

from tl2npu.kernel.access import accesses, side_of
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.assertions import divisions
from tl2npu.kernel.model import Branch, Buffer, Copy, Let, Loop, Memory, Side, Stmt, children, walk
from tl2npu.kernel.stages import (
    changed_variables,
    count_of_statements,
    flat,
    is_lost,
    landing_buffers,
    overtaken,
    parts,
    shared,
    summed_axes,
)
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.kernel.turns import Turns, TurnsReader, stages_node
from tl2npu.passes.gpu.launch.grid import is_outside
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.writing.statements import Names, expression, factor, parse
from tl2npu.passes.writing.tiles import Tiles
from tl2npu.source.edits import Edits
from tl2npu.source.tree import nodes_of, replaced

_FEWEST = 2
_WHY = "# TL612: no stages where a remainder is left: the compiler would drop the last turns"
_REST = "# TL139: no stages where a tile is cut: only the first of them would have its rest cleared"
_LATER = "# TL612: with stages this runs a turn later, and needs the vector of its own turn"


def limit(job: Job) -> bool:
    """Rewrite every pipelined loop that the NPU would not run as the GPU does; True if one has stages of both cores."""
    kept, reasons = (None, {}) if job.ways.in_turns else _keep_stages(job)
    job.staged = kept is not None
    edits = Edits(job.file.index)
    for number, stmt in enumerate(_pipelined_loops(job)):
        why = (reasons.get(number) or _why_not(job, stmt)) if number != kept else None
        if why is None:
            continue
        assert stmt.call is not None
        assert isinstance(stmt.node, cst.For)
        bounds = [item for item in (stmt.ranges[0].start_node, stmt.ranges[0].stop_node) if item is not None]
        text = f"T.serial({', '.join(code(item) for item in bounds)})"
        edits.replace(stmt.call, expression(job, text, stmt.call))
        job.change("TL139", stmt.node, f"T.Pipelined -> T.serial: {why}")
    job.apply(edits)
    for number in range(len(_pipelined_loops(job))):
        loop = _pipelined_loops(job)[number]
        stages = _stages(job, loop) if _why_not(job, loop) is None else None
        if stages is not None and (fills := _filled(job, loop)):
            shown = _write(job, loop, stages, fills, _REST)
            job.change("TL139", loop.node, f"keeps stages{shown}: the rest of a tile would keep what was in it")
    return job.staged


def _why_not(job: Job, loop: Loop) -> str | None:
    inside = list(walk(loop.body))
    if count_of_statements(loop.body) < _FEWEST:
        return "it has fewer than two statements"
    sides = {side_of(stmt) for stmt in inside if not children(stmt) and not isinstance(stmt, Let)}
    if Side.VECTOR in sides or Side.BOTH in sides:
        return "vector cores work in it"
    if any(isinstance(stmt, Loop) and stmt.kind == "pipelined" for stmt in inside):
        return "pipelines do not nest"
    if any(isinstance(stmt, Branch) for stmt in inside):
        return "its statements differ between iterations"
    if changed_variables(job.kernel, loop):
        return "a variable changes in it"
    if (early := next(overtaken(loop, job.kernel), None)) is not None:
        return f"`{early[1].name}` {early[2]}"
    item = loop.ranges[0]
    if any("@" in name for name in (*item.extent.variables(), *item.start.variables())) or loop.loads:
        return "its bounds are known at run time only"
    if _stages(job, loop) is not None and _filled(job, loop) is None:
        return "its last load may end with its tensor, and the rest of the tile would keep what was in it"
    return None


def _filled(job: Job, loop: Loop) -> list[str] | None:
    """Conditions under which its loads fill what products sum over; None if none can be written."""
    tests: list[str] = []
    for load in walk(loop.body):
        if isinstance(load, Copy) and load.src.buffer.memory is Memory.GM and load.dst.buffer.memory is Memory.L1:
            axes = summed_axes(loop, load.dst.buffer)
            found = _fills(job, load, loop.env, axes=axes, turns=loop.ranges[0].extent)
            if found is None:
                return None
            tests += found
    return list(dict.fromkeys(tests))


# TL612: a pipelined loop over both cores stays one, so that the cube core works on the next turn meanwhile.
#
# The compiler takes a turn apart (:mod:`tl2npu.kernel.stages`). What that asks for is made here: a tile that keeps its
# value from turn to turn is used in one part only, so uses in earlier parts move down to the last one, and a vector
# whose rows a part reads is copied to one of its own. Turns have to come out even in stages (g9_rem32), which a
# condition on the sizes says: ``num_stages=2 if seq_len % (2 * block_N) == 0 else 0``; without stages it is a plain
# loop.


class _InTurns(Exception):
    """Why a loop cannot keep its stages."""


def _keep_stages(job: Job) -> tuple[int | None, dict[int, str]]:
    """Keep the first pipelined loop over both cores that can be proved right in stages.

    Its number among the pipelined loops, None if there is none; and by number why those before it cannot.
    """
    reasons: dict[int, str] = {}
    for number in range(len(_pipelined_loops(job))):
        loop = _pipelined_loops(job)[number]
        if {buffer.memory for buffer in landing_buffers(parts(loop.body))} != {Memory.UB, Memory.L1}:
            continue  # tiles do not go both ways
        file, edited = job.file, list(job.edited)
        try:
            _head(job, loop)
            _needs_no_more_than_tiles(job, loop)
            _sink(job, loop)
            _copy_rows(job, number)
            loop = _pipelined_loops(job)[number]
            turns, stages = _head(job, loop)
            _keep(job, loop, turns, stages, _tests(job, loop, turns))
            return number, reasons
        except _InTurns as why:
            reasons[number] = str(why)
            job.restore(file, edited)
    return None, reasons


def _head(job: Job, loop: Loop) -> tuple[Turns, cst.BaseExpression]:
    turns, stages = _reader(job).of(loop), _stages(job, loop)
    if stages is None:
        raise _InTurns("it is given no more than one stage")
    if turns is None:
        raise _InTurns("its number of turns is not known when the kernel is built")
    if _rest(job, turns, stages):
        raise _InTurns("its turns do not come out even in its stages")
    return turns, stages


def _rest(job: Job, turns: Turns, stages: cst.BaseExpression) -> int | None:
    """What is left of the size behind whole groups of stages, if it is known."""
    divisors = (turns.size, stages, turns.tile)
    size, count, tile = (job.file.evaluator.sym(node, turns.env) if node is not None else const(1) for node in divisors)
    return None if turns.tests else (size % (count * tile)).constant


def _pipelined_loops(job: Job) -> list[Loop]:
    """Every ``T.Pipelined`` of a kernel, in text order."""
    return [s for s in job.kernel.walk() if isinstance(s, Loop) and s.kind == "pipelined" and s.call is not None]


def _reader(job: Job) -> TurnsReader:
    return TurnsReader(job.kernel, job.file.evaluator, job.late)


def _stages(job: Job, loop: Loop) -> cst.BaseExpression | None:
    """The author's number of stages, if it is more than one or may be."""
    node = stages_node(loop)
    if node is None or not _reader(job).is_decided(node, loop.env):
        return None
    known = job.file.evaluator.sym(node, loop.env).constant
    return None if known is not None and known < 2 else node


def _needs_no_more_than_tiles(job: Job, loop: Loop) -> None:
    """The compiler keeps all statements of the loop where it takes it apart."""
    if any(part.side is Side.BOTH for part in parts(loop.body)):
        raise _InTurns("both cores work in one of its statements")
    if any(isinstance(inner, Loop) and inner.kind == "pipelined" for inner in walk(loop.body)):
        raise _InTurns("pipelines do not nest")
    for stmt in flat(loop.body):
        if isinstance(stmt, Let) and is_lost(stmt, job.kernel):
            raise _InTurns(f"`{stmt.name}` in it is not a whole number, or comes from a tile or tensor")
        if isinstance(stmt, Branch) and not job.late.python_decides(stmt):
            raise _InTurns("an `if` in it is decided at run time")


def _buffers(stmts: Sequence[Stmt], *, written: bool = False) -> set[Buffer]:
    return {a.operand.buffer for s in walk(list(stmts)) for a in accesses(s) if a.writes or not written}


# uses of a value that the next turn needs ----------------------------------------------------------------------------


def _sink(job: Job, loop: Loop) -> None:
    """Move statements so that every tile that lives on has its uses in one part."""
    found = parts(loop.body)
    target_of: dict[Stmt, Stmt] = {}
    for one in shared(found, job.kernel):
        if not one.is_state:
            continue
        text = f"`{one.buffer.name}` lives on to the next turn, and cannot be used in one part only"
        target = next(stmt for stmt in found[one.users[-1]].body if one.buffer in _buffers([stmt]))
        early = [s for number in one.users[:-1] for s in found[number].body if one.buffer in _buffers([s])]
        if any(found[number].side is not found[one.users[-1]].side for number in one.users):
            raise _InTurns(text)
        if any(stmt not in loop.body for stmt in (*early, target)):
            raise _InTurns(text)  # a macro has them
        for stmt in early:
            between = loop.body[loop.body.index(stmt) + 1 : loop.body.index(target)]
            if target_of.setdefault(stmt, target) is not target:
                raise _InTurns(text)
            if any(_depend(stmt, other) for other in between if other not in early):
                raise _InTurns(text)
    edits = Edits(job.file.index)
    for target in dict.fromkeys(target_of.values()):
        moved = [stmt.node for stmt in loop.body if target_of.get(stmt) is target]
        for node in moved:
            edits.move(node)
        edits.replace_many(target.node, [*moved, target.node])
    job.apply(edits)


def _depend(left: Stmt, right: Stmt) -> bool:
    """Whether two statements may not change places."""
    if isinstance(right, Let):
        return False
    wrote, writes = _buffers([left], written=True), _buffers([right], written=True)
    return bool(wrote & _buffers([right]) or writes & _buffers([left]))


# rows of a vector ----------------------------------------------------------------------------------------------------


def _copy_rows(job: Job, number: int) -> None:
    """Give every part that reads rows of a shared vector one of its own."""
    loop = _pipelined_loops(job)[number]
    found = parts(loop.body)
    edits, tiles = Edits(job.file.index), Tiles(job, Names(job))
    renamed: dict[Stmt, dict[str, str]] = {}
    copies: dict[Stmt | None, list[tuple[str, str]]] = {}
    for one in shared(found, job.kernel):
        reading = [p for p in one.users if any(use.element for use in found[p].uses if use.buffer is one.buffer)]
        if not one.written and len(reading) == len(one.users):
            reading = reading[1:]  # what no turn changes is read by one part as it is
        for place in reading:
            mine = [stmt for stmt in found[place].body if one.buffer in _buffers([stmt])]
            is_vector = len(one.buffer.shape) == 1 and isinstance(one.buffer.node, cst.Call)
            if not is_vector or one.buffer in _buffers(mine, written=True) or one.buffer.statement is None:
                raise _InTurns(f"single elements of `{one.buffer.name}` are read where it is made")
            if any(stmt not in loop.body for stmt in mine):
                raise _InTurns(f"a macro reads single elements of `{one.buffer.name}`")
            name = tiles.like(one.buffer, f"{one.buffer.name}_now")
            # what no turn changes is copied once, before the loop
            copies.setdefault(mine[0] if one.written else None, []).append((one.buffer.name, name))
            for stmt in mine:
                renamed.setdefault(stmt, {})[one.buffer.name] = name
    for stmt, names in renamed.items():
        text = "\n".join("T.copy({}, {})".format(*pair) for pair in copies.get(stmt, ()))
        lines = parse(job, f"{_LATER}\n{text}", stmt.node) if text else []
        edits.replace_many(stmt.node, [*lines, _renamed(stmt.node, names)])
    tiles.commit(edits)
    job.apply(edits)
    _prepare(job, _pipelined_loops(job)[number], copies)


def _prepare(job: Job, loop: Loop, copies: Mapping[Stmt | None, Sequence[tuple[str, str]]]) -> None:
    """What stands before the loop; and tiles that are copied now need not name their memory."""
    edits = Edits(job.file.index)
    before = [line for pair in copies.get(None, ()) for line in parse(job, "T.copy({}, {})".format(*pair), loop.node)]
    if before:
        edits.replace_many(loop.node, [*before, loop.node])
    copied = {name for pairs in copies.values() for name, _ in pairs}
    for buffer in job.kernel.buffers.values():
        is_own = isinstance(buffer.node, cst.Call) and buffer.node not in job.original
        if buffer.name in copied and buffer.alloc == "alloc_ub" and is_own:
            function = cst.ensure_type(buffer.node, cst.Call).func
            edits.replace(function, expression(job, "T.alloc_shared", function))
    job.apply(edits)


def _renamed(node: cst.CSTNode, names: Mapping[str, str]) -> cst.CSTNode:
    found = {id(name): cst.Name(names[name.value]) for name in nodes_of(node, cst.Name) if name.value in names}
    return replaced(node, found)


# the proof, and the loop ---------------------------------------------------------------------------------------------


def _tests(job: Job, loop: Loop, turns: Turns) -> list[str]:
    """Conditions on the sizes under which versions of tiles in L1 are filled to their ends. Raises :class:`_InTurns` if
    there are none, or something is left of what the moves and copies are for."""
    found = parts(loop.body)
    tests: list[str] = []
    for one in shared(found, job.kernel):
        if one.is_state:
            raise _InTurns(f"`{one.buffer.name}` lives on to the next turn, and has no versions")
        if any(use.element for place in one.users for use in found[place].uses if use.buffer is one.buffer):
            raise _InTurns(f"parts of a turn share `{one.buffer.name}`, and read single elements")
        if one.buffer.memory is Memory.L1 and one.inside:
            for load in walk(loop.body):
                if isinstance(load, Copy) and load.dst.buffer is one.buffer and load.src.buffer.memory is Memory.GM:
                    fills = _fills(job, load, turns.env, _size_and_tile(job, turns))
                    if fills is None:
                        raise _InTurns(
                            f"a load of `{one.buffer.name}` may end with its tensor, and leave the rest as it was"
                        )
                    tests += fills
    return list(dict.fromkeys(tests))


def _fills(
    job: Job,
    load: Copy,
    env: Env,
    known: tuple[Sym | None, Sym | None] = (None, None),
    axes: Collection[int] | None = None,
    turns: Sym | None = None,
) -> list[str] | None:
    """When the source holds all of the region: where it is one of the tiles that a size is a multiple of.

    ``known``: a size and a tile of it of which that is asked elsewhere; ``axes``: those of the tile that count, from
    the end; ``turns``: of the loop, which ends before a tile that is cut where it counts whole ones.
    """
    source, tile = load.src, load.dst.buffer
    if source.dims is None or load.dst.dims is not None:
        return [] if source.dims is None and load.dst.dims is None else None
    pairs = list(zip(source.dims, source.buffer.shape, source.buffer.shape_nodes, strict=False))
    sliced = [pair for pair in pairs if not pair[0].is_point] or pairs[-len(tile.shape) :]
    tests: list[str] = []
    for axis, ((dim, size, size_node), extent, extent_node) in enumerate(
        zip(reversed(sliced), reversed(tile.shape), reversed(tile.shape_nodes), strict=False), 1
    ):
        if (axes is not None and axis not in axes) or (turns is not None and turns == size // extent):
            continue
        room = (size - dim.lo - extent).constant
        if (dim.extent is not None and dim.extent != extent) or not _is_multiple(dim.lo, extent, *known):
            return None
        rest = (size % extent).constant if not extent.is_zero else None
        if (room is not None and room >= 0) or (size, extent) == known or rest == 0:
            continue
        if rest:
            return None
        if not all(_reader(job).is_decided(node, env) for node in (size_node, extent_node)):
            return None
        test = f"{factor(code(size_node))} % {factor(code(extent_node))} == 0"
        tests += [test] if test not in job.fact(_asserted) else []
    return tests


def _asserted(job: Job) -> frozenset[str]:
    """Tests that hold wherever the factory comes to its kernel."""
    pairs = divisions(job.file, job.located)
    return frozenset(f"{factor(code(size))} % {factor(code(tile))} == 0" for size, tile in pairs)


def _size_and_tile(job: Job, turns: Turns) -> tuple[Sym | None, Sym | None]:
    if turns.tile is None:
        return None, None
    return job.file.evaluator.sym(turns.size, turns.env), job.file.evaluator.sym(turns.tile, turns.env)


def _is_multiple(place: Sym, extent: Sym, size: Sym | None, tile: Sym | None) -> bool:
    """Whether a place is a multiple of an extent, where ``size`` is one of ``tile``."""
    factors = {extent.atom} | ({size.atom} if size is not None and tile == extent else set())
    number = extent.constant
    return all(
        any(atom in factors for atom in monomial) or (number is not None and number > 0 and coef % number == 0)
        for monomial, coef in place.terms
    )


def _keep(job: Job, loop: Loop, turns: Turns, stages: cst.BaseExpression, fills: Sequence[str]) -> None:
    """The loop over both cores, in stages where its turns come out even in them."""
    text, tests = code(stages), list[str]()
    if job.file.evaluator.sym(stages, turns.env).constant is None:
        tests.append(f"{factor(text)} > 1")
    if _rest(job, turns, stages) is None:
        by = factor(text) if turns.tile is None else f"({factor(text)} * {factor(code(turns.tile))})"
        tests += [*turns.tests, f"{factor(code(turns.size))} % {by} == 0"]
    shown = _write(job, loop, stages, [*tests, *fills], _WHY)
    job.change("TL612", loop.node, f"keeps stages{shown}: the cube core works ahead of the vector cores")


def _write(job: Job, loop: Loop, stages: cst.BaseExpression, tests: Sequence[str], why: str) -> str:
    """The loop with its stages under these conditions, and how a message says them."""
    assert loop.call is not None
    text = code(stages)
    above: list[cst.SimpleStatementLine] = []
    if tests:
        text, name = f"{text} if {' and '.join(tests)} else 0", Names(job).fresh("stages", "npu_stages")
        line = cst.parse_statement(f"{why}\n{name} = {text}", job.module.config_for_parsing)
        line = cst.ensure_type(line, cst.SimpleStatementLine)
        if is_outside(job, cst.ensure_type(line.body[0], cst.Assign).value):
            above, text = [line], name
    bounds = [code(item) for item in (loop.ranges[0].start_node, loop.ranges[0].stop_node) if item is not None]
    head = f"T.Pipelined({', '.join(bounds)}, num_stages={text})"
    edits = Edits(job.file.index)
    edits.replace(loop.call, expression(job, head, loop.call))
    job.apply(edits)
    constants.define(job, above)
    return f" where {' and '.join(tests)}" if tests else ""
