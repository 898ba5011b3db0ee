"""The program that memory planning sees: what the passes before it make of a kernel, as tiles that are touched.

In the order of ``tilelang/engine/phase.py`` (95acbd7f): scratch tiles of instructions, the split of ``threads=2``,
loops of one turn dissolved, ``T.Parallel`` as instructions with temporaries, transfers between the cores (the tile
arrives in front of the instruction that reads it first), the program of the cube core before that of the vector cores,
software pipelines, unrolled loops.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tl2npu.checks.memory_plan.scratch import scratch_of
from tl2npu.checks.memory_plan.stages import Stage, schedule
from tl2npu.checks.memory_plan.tiles import PlannedTile, Tiles
from tl2npu.checks.memory_plan.vectors import Nest, Touched
from tl2npu.checks.operators.expr import Expr, value_of
from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import DEFAULT_TARGET, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.lifetimes import Block, Glance, Leaf, Step, Tile
from tl2npu.kernel.access import accesses, is_on_chip, scalars, side_of
from tl2npu.kernel.factories.configs import COMBINE
from tl2npu.kernel.model import (
    Alloc,
    Branch,
    Buffer,
    Copy,
    Inlined,
    Let,
    Loop,
    Memory,
    Op,
    Opaque,
    Operand,
    Range,
    ScopeBlock,
    Side,
    Stmt,
    Store,
    Sync,
    walk,
)
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.stages import Part, landing_buffers, parts, shared

_UNROLLED = 64

Arm = tuple[Branch, bool]


@dataclass(frozen=True)
class Program:
    """The steps, and the tiles in them by number. ``unsure``: something in it is not known well enough.

    ``merged``: tiles that may take the place of one that a loop over the elements reads for the last time (the
    detection of in-place operations in ``src/transform/ascend_storage_rewrite.cc``).
    """

    steps: tuple[Step, ...]
    tiles: tuple[PlannedTile, ...]
    unsure: bool
    merged: frozenset[Tile] = frozenset()


@dataclass(frozen=True, eq=False)
class _Made:
    """A step with the core that it is for; ``loads``: it copies from global memory into a tile.

    ``names``: the variables in it. Of a block, whose ``body`` goes into the step of a core later, ``stages`` and
    ``turns`` (None: not known) are those of a software pipeline over ``variable``.
    """

    side: Side
    step: Step
    reads: frozenset[Tile] = frozenset()
    writes: frozenset[Tile] = frozenset()
    loads: bool = False
    names: frozenset[str] = frozenset()
    body: tuple[_Made, ...] = ()
    stages: int = 0
    turns: int | None = None
    variable: str = ""


class Builder:
    """Builds the program of a kernel.

    ``without``: arms that are not there; ``known``: the sizes, as far as known; ``target``: of the compiler.
    """

    def __init__(
        self, subject: Subject, without: frozenset[Arm], known: Mapping[str, int], target: str = DEFAULT_TARGET
    ) -> None:
        self.subject = subject
        self.target = target
        self.without = without
        self.known = known
        split = split_of(subject) if subject.is_split else None
        self.halved = frozenset(split.rows) if split is not None else frozenset()
        self.tiles = Tiles(set(split.halved) if split is not None else set())
        self.unsure = False
        self._variables: list[str] = [name for name in (subject.kernel.cid, subject.kernel.vid) if name]
        self._landing = {
            placed.stmt.dst.buffer
            for placed in subject.statements
            if isinstance(placed.stmt, Copy) and is_on_chip(placed.stmt)
        }
        self._arrived: set[Tile] = set()
        self._merged: set[Tile] = set()
        self._blocks: dict[tuple[int, Side | None], tuple[_Made, list[Step]]] = {}

    def build(self) -> Program:
        """The program of all cores."""
        made = self._block(self.subject.kernel.body)
        if self.subject.is_on(COMBINE) is False:
            steps = self._steps(made, None)
        else:
            steps = [*(Block(tuple(self._steps(made, side)), loops=False) for side in (Side.CUBE, Side.VECTOR))]
        return Program(tuple(steps), tuple(self.tiles.found), self.unsure, frozenset(self._merged))

    # statements ------------------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[Stmt]) -> list[_Made]:
        found: list[_Made] = []
        for stmt in body:
            names = _names_of(stmt)
            found += [replace(made, names=made.names | names) if names else made for made in self._stmt(stmt)]
        return found

    def _stmt(self, stmt: Stmt) -> list[_Made]:
        if isinstance(stmt, (Alloc, Sync)):
            return []
        if isinstance(stmt, (Inlined, ScopeBlock)):
            return self._block(stmt.body)
        if isinstance(stmt, Branch):
            return self._branch(stmt)
        if isinstance(stmt, Loop):
            return self._loop(stmt)
        if isinstance(stmt, Let):
            return [_Made(Side.BOTH, Glance(self._numbers(stmt.value.loads)))]
        if isinstance(stmt, Copy):
            return self._copy(stmt)
        if isinstance(stmt, Op):
            return self._op(stmt)
        if isinstance(stmt, Store):
            touched = self._numbers((*stmt.value.loads, *stmt.target.loads, stmt.target))
            if any(tile != touched[-1] for tile in touched) and stmt.target.buffer.is_tile:
                self._merged.add(touched[-1])
            own = touched[-1:] if stmt.target.buffer.is_tile else ()
            read = frozenset(touched if stmt.augmented or not own else touched[:-1])
            leaf = Leaf(touched, read, frozenset(own), self._parts((stmt.target,)))
            return [_Made(side_of(stmt), leaf)]
        if isinstance(stmt, Opaque) and stmt.buffers:
            self.unsure = True
            tiles = tuple(self.tiles.buffer(buffer) for buffer in stmt.buffers if buffer.is_tile)
            return [_Made(Side.BOTH, Leaf(tiles, frozenset(tiles), frozenset(tiles)))]
        return []

    def _branch(self, stmt: Branch) -> list[_Made]:
        then, orelse = ((stmt, True) in self.without, (stmt, False) in self.without)
        if then or orelse:
            return self._block(stmt.orelse if then else stmt.then)
        self.unsure = self.unsure or self.subject.late.python_decides(stmt)
        body = (*self._block(stmt.then), *self._block(stmt.orelse))
        block = Block((), False, self._numbers(stmt.cond.loads), may_be_skipped=not stmt.orelse)
        return [_Made(Side.BOTH, block, body=body)]

    def _loop(self, stmt: Loop) -> list[_Made]:
        if stmt.kind == "while":
            body = tuple(self._block(stmt.body))
            return [_Made(Side.BOTH, Block((), False, self._numbers(stmt.loads)), body=body)]
        ranges = [item for item in stmt.ranges if not self._is_unit(item)]
        before = len(self._variables)
        self._variables += [str(item.var) for item in stmt.ranges]
        try:
            if stmt.kind == "parallel":
                return self._parallel(stmt, ranges)
            inner = stmt.body[0] if len(stmt.body) == 1 else None
            if stmt.kind == "serial" and len(ranges) == 1 and isinstance(inner, Loop) and inner.kind == "parallel":
                return self._nested(
                    self._parallel(inner, [r for r in inner.ranges if not self._is_unit(r)], ranges[0]), ranges
                )
            stages = number_of(stmt.num_stages, self.known) if stmt.num_stages is not None else 0
            of_both = parts(stmt.body) if stmt.kind == "pipelined" and stages else []
            if stages and (landing_buffers(of_both) or any(_stores_workspace(part) for part in of_both)):
                return self._staged(stmt, of_both, stages, ranges)
            made = self._block(stmt.body)
        finally:
            del self._variables[before:]
        head = self._numbers(stmt.loads)
        if stmt.kind == "unroll":
            return self._unrolled(made, ranges)
        if stmt.kind == "pipelined" and stages is None:
            self.unsure = True
        if stmt.kind == "pipelined" and stages:
            turns = ranges[0].extent.evaluate(self.known) if ranges else 1
            variable = str(stmt.ranges[0].var)
            step = Block((), True, head, frozenset((variable,)))
            return [_Made(Side.BOTH, step, body=tuple(made), stages=stages, turns=turns, variable=variable)]
        if stmt.kind == "persistent":
            self.unsure = True
        return self._nested(made, ranges, head)

    def _staged(self, stmt: Loop, found: Sequence[Part], stages: int, ranges: Sequence[Range]) -> list[_Made]:
        """A loop over both cores: rounds, in which each part is a loop over the stages."""
        for one in shared(found, self.subject.kernel):
            if one.inside and one.buffer.is_tile:
                self.tiles.found[self.tiles.buffer(one.buffer)].versions = stages
        names = frozenset(str(item.var) for item in stmt.ranges)
        made: list[_Made] = []
        for part in found:
            inner = tuple(self._block(part.body))
            made += [_Made(Side.BOTH, Block((), True, (), names), body=inner)] if stages > 1 else inner
        turns = stmt.ranges[0].extent.evaluate(self.known)
        return made if turns is not None and turns // stages == 1 else self._nested(made, ranges)

    def _is_unit(self, item: Range) -> bool:
        turns = item.extent.evaluate(self.known)
        if turns is not None and item in self.halved:
            turns = max(1, turns // 2)
        step = item.step.evaluate(self.known) if item.step is not None else 1
        return turns is not None and bool(step) and -(-turns // (step or 1)) == 1

    def _nested(self, made: list[_Made], ranges: Sequence[Range], head: tuple[Tile, ...] = ()) -> list[_Made]:
        for item in reversed(ranges):
            made = [_Made(Side.BOTH, Block((), True, head, frozenset((str(item.var),))), body=tuple(made))]
        return made

    def _unrolled(self, made: list[_Made], ranges: Sequence[Range]) -> list[_Made]:
        turns = ranges[0].extent.evaluate(self.known) if ranges else 1
        if turns is None or turns > _UNROLLED:
            self.unsure = True
            return self._nested(made, ranges)
        name = frozenset(str(item.var) for item in ranges)
        return [again for turn in range(turns) for again in (_again(one, name, ()) if turn else one for one in made)]

    # T.Parallel ------------------------------------------------------------------------------------------------------

    def _parallel(self, stmt: Loop, ranges: list[Range], around: Range | None = None) -> list[_Made]:
        body: Sequence[Stmt] = stmt.body
        every = list(ranges)
        while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
            self._variables += [str(item.var) for item in body[0].ranges]
            every += [item for item in body[0].ranges if not self._is_unit(item)]
            body = body[0].body
        stores = [inner for inner in body if isinstance(inner, Store)]
        if not every or len(every) > 2 or len(stores) != len(body):
            return self._nested(self._block(body), every)
        evaluator = self.subject.located.evaluator
        turns = ((around.extent, around in self.halved),) if around is not None and len(every) == 1 else ()
        nest = Nest(every[0] if len(every) == 2 else None, every[-1], self.halved, self.tiles, self._is_fixed, turns)
        found = nest.vectorise([(store.target, value_of(store, evaluator)) for store in stores])
        if found is None:
            return self._nested(self._block(body), every)
        made = [one for touched in found.touched for one in self._instruction(touched)]
        names = frozenset(name for store in stores for name in _names_of(store))
        rows = every[:1] if found.in_rows else ()
        if rows:
            variable = frozenset((str(rows[0].var),))
            made = [replace(one, step=_in_parts(one.step, variable)) for one in made]
        made = [replace(one, names=names) for one in made]
        return self._nested(made, rows)

    def _is_fixed(self, value: Expr) -> bool:
        """A number, or a variable of the kernel by itself."""
        if value.kind != "number" or value.sym is None:
            return value.kind == "number"
        names = value.sym.variables() & set(self._variables)
        return not names or str(value.sym) in names

    def _instruction(self, touched: Touched) -> list[_Made]:
        return self._call(Side.VECTOR, touched.reads, touched.writes)

    # copies and operators --------------------------------------------------------------------------------------------

    def _copy(self, stmt: Copy) -> list[_Made]:
        loads = [load for option in stmt.options.values() for load in option.loads]
        inner = self._numbers((*stmt.src.loads, *stmt.dst.loads, *loads))
        source, target = self._numbers((stmt.src,)), self._numbers((stmt.dst,))
        if is_on_chip(stmt):  # it arrives in front of its first reader
            side = Side.CUBE if stmt.src.buffer.memory is Memory.L0C else Side.VECTOR
            return self._call(side, (*source, *inner), ())
        side = side_of(stmt)
        from_global = stmt.src.buffer.memory is Memory.GM
        return self._call(
            side, (*source, *inner), target, loads=from_global and bool(target), parts=self._parts((stmt.dst,))
        )

    def _op(self, stmt: Op) -> list[_Made]:
        if stmt.op.kind in (Kind.ANNOTATION, Kind.ALLOC, Kind.LAUNCH):
            return []
        reads: list[Operand] = []
        writes: list[Operand] = []
        for access in accesses(stmt):
            if access.reads:
                reads.append(access.operand)
            if access.writes:
                writes.append(access.operand)
        targets = list(self._numbers(writes))
        for name, size, is_used in scratch_of(stmt, self.target):
            tile = self.tiles.scratch(size, self.subject.is_split, name)
            targets += [tile] if is_used else []
        return self._call(side_of(stmt), self._numbers(reads), tuple(targets), parts=self._parts(writes))

    def _call(
        self,
        side: Side,
        reads: tuple[Tile, ...],
        writes: tuple[Tile, ...],
        *,
        loads: bool = False,
        parts: tuple[tuple[Tile, frozenset[str]], ...] = (),
    ) -> list[_Made]:
        """An instruction, behind the arrival of tiles from the other core that nothing has read before."""
        made: list[_Made] = []
        for tile in dict.fromkeys(reads):
            buffer = self.tiles.found[tile].of
            if buffer in self._landing and tile not in self._arrived:
                self._arrived.add(tile)
                there = Side.VECTOR if self.tiles.found[tile].memory is Memory.UB else Side.CUBE
                only = frozenset((tile,))
                made.append(_Made(there, Leaf((tile,), frozenset(), only), writes=only, loads=True))
        leaf = Leaf((*reads, *writes), frozenset(reads), frozenset(writes), parts)
        made.append(_Made(side, leaf, leaf.reads, leaf.writes, loads))
        return made

    def _parts(self, written: Iterable[Operand]) -> tuple[tuple[Tile, frozenset[str]], ...]:
        """The tiles of which a part is written that depends on variables."""
        found: list[tuple[Tile, frozenset[str]]] = []
        for operand in written:
            names = frozenset(name for dim in operand.dims or () for name in dim.lo.variables())
            if names and operand.buffer.is_tile:
                found.append((self.tiles.buffer(operand.buffer), names))
        return tuple(found)

    def _numbers(self, operands: Iterable[Operand]) -> tuple[Tile, ...]:
        found: list[Tile] = []
        for operand in operands:
            if operand.buffer.is_tile:
                found.append(self.tiles.buffer(operand.buffer))
            found += self._numbers(operand.loads)
        return tuple(found)

    # cores and pipelines ---------------------------------------------------------------------------------------------

    def _steps(self, made: Sequence[_Made], side: Side | None) -> list[Step]:
        """What is left for one core (None: for all that text order has)."""
        found: list[Step] = []
        for one in made:
            if isinstance(one.step, Block):
                found += self._of_block(one, one.step, side)
            elif side is None or one.side in (side, Side.BOTH, Side.NONE):
                found.append(one.step)
        return found

    def _of_block(self, one: _Made, block: Block, side: Side | None) -> list[Step]:
        key = id(one), side
        if key not in self._blocks:
            self._blocks[key] = one, self._pipeline(one, block, side) if one.stages else self._plain(one, block, side)
        return self._blocks[key][1]

    def _plain(self, one: _Made, block: Block, side: Side | None) -> list[Step]:
        inner = self._steps(one.body, side)
        done = any(isinstance(step, (Leaf, Block)) for step in inner)
        return [replace(block, body=tuple(inner))] if done else []

    def _pipeline(self, one: _Made, block: Block, side: Side | None) -> list[Step]:
        parts = [part for part in one.body if self._steps([part], side)]
        if not parts:
            return []
        stages: list[Stage] = []
        for part in parts:
            leaves = list(_leaves(part, side))
            reads = frozenset(tile for leaf in leaves for tile in leaf.reads)
            writes = frozenset(tile for leaf in leaves for tile in leaf.writes)
            stages.append(Stage(reads, writes, any(leaf.loads for leaf in leaves)))
        found = schedule(stages, one.stages)
        versions = {tile: count for tile, count in found.versions.items() if self._only_inside(tile, one)}
        for tile, count in versions.items():
            self.tiles.found[tile].versions = max(1, count)

        def turns(ahead: bool) -> list[Step]:
            parts_there = [parts[number] for number in found.order if (number in found.ahead) is ahead]
            first = [_again(part, None, ()) for part in parts_there]
            again = [_again(part, names, versions) for _ in range(1, found.depth) for part in first]
            return self._steps([*first, *again], side)

        names = frozenset((one.variable,))
        inside = self._steps([parts[number] for number in found.order], side)
        left = one.turns - found.depth if one.turns is not None else None
        steps = turns(True)
        if left == 1:
            steps += inside
        elif left is None or left > 1:
            steps.append(Block(tuple(inside), True, block.head, block.variables))
        return [*steps, *turns(False)]

    def _only_inside(self, tile: Tile, loop: _Made) -> bool:
        """Buffers that are used outside of the loop have one version."""
        buffer = self.tiles.found[tile].of
        if buffer is None:
            return True
        inside = sum(tile in leaf.reads | leaf.writes for leaf in _leaves(loop, None))
        return inside == sum(self._mentions(placed.stmt, buffer) for placed in self.subject.statements)

    def _mentions(self, stmt: Stmt, buffer: Buffer) -> bool:
        if isinstance(stmt, Copy) and is_on_chip(stmt) and stmt.dst.buffer is buffer:
            return False
        return any(a.operand.buffer is buffer for a in accesses(stmt))


def _stores_workspace(part: Part) -> bool:
    """A transfer that makes the loop one over both cores (``IsWorkspaceBuffer`` of ``cross_core_pipeline.cc``)."""
    leaves = (leaf for leaf in walk(part.body) if isinstance(leaf, Copy))
    return any(leaf.dst.buffer.memory is Memory.GM and "workspace" in leaf.dst.buffer.name for leaf in leaves)


def _in_parts(step: Step, variable: frozenset[str]) -> Step:
    """An instruction on one row, in a loop over the rows."""
    assert isinstance(step, Leaf)
    return replace(step, parts=tuple((tile, variable) for tile in sorted(step.writes)))


def _leaves(made: _Made, side: Side | None) -> Iterable[_Made]:
    if isinstance(made.step, Block):
        for inner in made.body:
            yield from _leaves(inner, side)
    elif side is None or made.side in (side, Side.BOTH, Side.NONE):
        yield made


def _again(made: _Made, names: frozenset[str] | None, tiles: Container[Tile]) -> _Made:
    """Another turn of a statement; a plain one is the same object if it has neither the variables nor the tiles in it.

    ``names`` None: a copy in any case.
    """
    if isinstance(made.step, Block):
        inner = None if made.step.loops else names
        return replace(made, step=replace(made.step), body=tuple(_again(part, inner, tiles) for part in made.body))
    same = names is not None and not made.names & names and not any(tile in tiles for tile in made.step.touched)
    return made if same else replace(made, step=replace(made.step))


def _names_of(stmt: Stmt) -> frozenset[str]:
    """The variables in the indices and numbers of a statement."""
    if not isinstance(stmt, (Copy, Op, Store)):
        return frozenset()
    dims = (dim for access in accesses(stmt) for dim in access.operand.dims or ())
    values = (*(scalar.sym for scalar in scalars(stmt)), *(dim.lo for dim in dims))
    return frozenset(name for value in values for name in value.variables())
