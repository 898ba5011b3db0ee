"""What a kernel needs of the on-chip memories, and whether the compiler finds a place for it.

The compiler seldom says what is wrong: with memory planning it rejects the kernel in the name of some tile or crashes,
without it the addresses run over. So its planner is repeated: what it sees of a kernel (``plan_program``), from where
to where it takes a tile to be alive and where it puts it (``dialects.lifetimes``, ``dialects.placement``); and the
operand slots of ``gemm_v0`` are computed. Evidence: facts 4 (g8_l0a, l0a2), 8 and 10.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import libcst as cst

from tl2npu.checks.memory_plan.program import Arm, Builder, Program
from tl2npu.checks.memory_plan.tiles import PlannedTile
from tl2npu.checks.operators.gemm import depth_of
from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import PTO, Subject
from tl2npu.devices import DEFAULT_DEVICE, DEVICES
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.lifetimes import Tile, lifetimes
from tl2npu.dialects.placement import Fit, Interval, Placement, place, shared
from tl2npu.dialects.sharing import Conflict, Harm, conflicts
from tl2npu.kernel.environment import Closure
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import Caller, Values
from tl2npu.kernel.factories.concrete import evaluate
from tl2npu.kernel.factories.configs import PLANNING
from tl2npu.kernel.model import Branch, Loop, Memory, Op, Operand, Range, Scalar
from tl2npu.kernel.ranges.numbers import number_of
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.variables import variables
from tl2npu.source.constants import NoValue
from tl2npu.source.tree import names_in

_K_STEP = 128
HUGE = 1 << 20
"""Elements of a tile that no memory holds."""

_CONDITIONS = 4
_PLANNED = (Memory.L1, Memory.UB, Memory.L0C)
_OPERANDS = (Memory.L0A, Memory.L0B)
"""Of tiles that the author allocates there; no check of the compiler looks at them."""


@dataclass(frozen=True)
class Overflow:
    """A memory of ``limit`` bytes in which not everything has a place, or might not have.

    ``need``: bytes that are wanted at the same time; ``buffer`` a tile that finds no place, or the largest, of ``size``
    bytes. ``fit`` is never ``CERTAIN``.
    """

    memory: str
    limit: int
    need: int
    buffer: str
    size: int
    node: cst.CSTNode
    fit: Fit = Fit.NEVER

    def __str__(self) -> str:
        if self.fit is Fit.DOUBTFUL:
            text = f"{self.memory} holds {self.limit} bytes, the kernel needs {self.need}, with gaps"
            return f"may not fit: {text} between tiles perhaps more (`{self.buffer}`: {self.size})"
        if self.need <= self.limit:
            text = f"{self.memory} holds {self.limit} bytes, the kernel needs {self.need}"
            return f"{text} plus gaps between tiles: `{self.buffer}` ({self.size}) does not fit"
        if self.need == self.size:
            return f"{self.memory} holds {self.limit} bytes, `{self.buffer}` needs {self.need}"
        return f"{self.memory} holds {self.limit} bytes, the kernel needs {self.need} (`{self.buffer}`: {self.size})"


@dataclass
class _Plan:
    """A program with the lifetimes of its tiles."""

    program: Program
    lives: Mapping[Tile, tuple[int, int]]

    @cached_property
    def conflicts(self) -> Mapping[Conflict, Harm]:
        """Which tiles must not share an address."""
        return conflicts(self.program.steps, self.lives)

    @cached_property
    def _by_memory(self) -> Mapping[Memory, list[Tile]]:
        found: dict[Memory, list[Tile]] = {}
        for number, tile in enumerate(self.program.tiles):
            if number in self.lives:
                found.setdefault(tile.memory, []).append(number)
        return found

    def tiles_in(self, memory: Memory) -> Sequence[Tile]:
        """The numbers of the tiles that planning places in a memory."""
        return self._by_memory.get(memory, ())


@dataclass(frozen=True)
class Shared:
    """``kept`` has a value that is still read when ``over`` is written, and both have bytes in common.

    ``is_certain``: for every order of ties, and in every turn of the loops.
    """

    kept: PlannedTile
    over: PlannedTile
    is_certain: bool


_Sizes = tuple[int | None, ...]
_Told = tuple[frozenset[tuple[str, int]], frozenset[tuple[str, str]]]


class Needs:
    """What a kernel needs of each memory, for given sizes; ``target``: of the compiler, None for the kernel's own."""

    def __init__(self, subject: Subject, target: str | None = None) -> None:
        self.subject = subject
        self.target = target or subject.target
        device = DEVICES.get(subject.options.device, DEFAULT_DEVICE)
        # Without planning, tiles lie one behind the other up to the end of the memory; planning keeps a part back.
        self.capacity = device.hardware if subject.is_on(PLANNING) is False else device.capacity
        by_hand = any(isinstance(p.stmt, Op) and p.stmt.op.name == "annotate_address" for p in subject.statements)
        # buffers that share addresses on purpose need less than the sum of them
        self._memories = () if by_hand else _PLANNED
        self._choices = list(_choices(subject))
        self._loops = [placed.stmt for placed in subject.statements if isinstance(placed.stmt, Loop)]
        self._halved = frozenset(split_of(subject).rows) if subject.is_split else frozenset[Range]()
        self._plans: dict[tuple[object, ...], _Plan] = {}
        self._placed: dict[tuple[object, ...], tuple[Placement, Interval | None]] = {}
        self._found: dict[_Told, list[Overflow]] = {}
        self._only: Collection[str] | None = None
        tested = (name.value for tests, _ in self._choices for branch, _ in tests for name in _names_of(branch))
        self.variables = variables(subject.kernel) | frozenset(tested)

    @classmethod
    def of_subject(cls, subject: Subject, target: str | None = None) -> Needs:
        """What the kernel under check needs with a compiler target, worked out once for all who ask."""
        key = cls, target or subject.target
        if key not in subject.kept:
            subject.kept[key] = cls(subject, target)
        return cast("Needs", subject.kept[key])

    def of_only(self, names: Collection[str]) -> Needs:
        """What the kernel needs of each memory for the tiles of these names alone."""
        made = copy(self)
        made._only, made._placed, made._found = names, {}, {}
        return made

    def of(self, caller: Caller) -> list[Overflow]:
        """Every memory that the sizes and types of a caller overflow."""
        return self.of_sizes(caller.values, caller.words)

    def of_sizes(self, known: Values, words: Mapping[str, str]) -> list[Overflow]:
        """Every memory that these sizes and types overflow, or might overflow; worked out once for each."""
        told = self.told(known, words)
        if told not in self._found:
            self._found[told] = list(self.overflows(known, words))
        return self._found[told]

    def told(self, known: Values, words: Mapping[str, str]) -> _Told:
        """What sizes and types say of the kernel: callers that say the same need the same memory."""
        return frozenset(item for item in known.items() if item[0] in self.variables), frozenset(words.items())

    def that_differ(self) -> Collection[Caller]:
        """The callers of the kernel, in order, without those who say the same as one before."""
        found: dict[_Told, Caller] = {}
        for caller in self.subject.callers:
            found.setdefault(self.told(caller.values, caller.words), caller)
        return found.values()

    def overflows(self, known: Values, words: Mapping[str, str]) -> Iterator[Overflow]:
        """Every memory that these sizes and types overflow, or might overflow."""
        launch = self.subject.kernel.launched
        plans = list(self._possible(known, words))
        for memory in (*self._memories, *_OPERANDS) if self._memories else ():
            limit = self.capacity.of(memory.value.lower())
            if limit is None:
                continue
            found = [self._place(plan, memory, limit, known, words) for plan in plans]
            bad = [pair for pair in found if pair[0].fit is not Fit.CERTAIN]
            if bad:
                never = all(placement.fit is Fit.NEVER for placement, _ in found)
                placement, tile = max(bad, key=lambda pair: (pair[0].fit is Fit.NEVER, pair[0].peak))
                assert tile is not None
                fit = Fit.NEVER if never else Fit.DOUBTFUL
                yield Overflow(memory.value, limit, placement.peak, tile.name, tile.size, launch.call, fit)
        for placed in self.subject.statements:
            if isinstance(placed.stmt, Op) and placed.stmt.op.kind is Kind.GEMM:
                yield from self._operands(placed.stmt, known, words)

    def filled(self, known: Values, words: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
        """Of each memory that planning fills: its name, the bytes that are wanted at the same time, its size."""
        plans = list(self._possible(known, words))
        for memory in self._memories:
            limit = self.capacity.of(memory.value.lower())
            if limit is not None:
                found = [self._place(plan, memory, limit, known, words)[0].peak for plan in plans]
                yield memory.value, max(found, default=0), limit

    def unknown(self, known: Values, words: Mapping[str, str]) -> tuple[str, ...]:
        """The variables that the size of some tile waits for."""
        found: dict[str, None] = {}
        for tile in self._waiting(known, words):
            found |= dict.fromkeys(sorted(tile.names - known.keys()))
        return tuple(found)

    def capped(self, known: Values, words: Mapping[str, str]) -> bool:
        """True if every tile that waits for variables has a largest size, as ``T.min(n, 4096)`` has."""
        open_ = self.unknown(known, words)
        sizes = [
            [tile.bytes({**known, **dict.fromkeys(open_, large)}, words) for tile in self._waiting(known, words)]
            for large in (HUGE, 2 * HUGE)
        ]
        return bool(open_) and None not in sizes[0] and sizes[0] == sizes[1]

    def untyped(self, known: Values, words: Mapping[str, str]) -> tuple[str, ...]:
        """The element types that the size of some tile waits for, by the names that they have in the kernel."""
        found: dict[str, None] = {}
        for tile in self._waiting(known, words):
            types = [size.dtype for size in tile.sizes]
            found |= dict.fromkeys(dtype for dtype in types if words.get(dtype, dtype) not in ITEM_SIZE)
        return tuple(found)

    def _waiting(self, known: Values, words: Mapping[str, str]) -> Iterator[PlannedTile]:
        """Every tile that memory planning places."""
        for plan in self._possible(known, words):
            for number, tile in enumerate(plan.program.tiles):
                if number in plan.lives and tile.memory in self._memories:
                    yield tile

    def shared(self, known: Values, words: Mapping[str, str]) -> Iterator[Shared]:
        """Tiles that are overwritten while they are needed, for sizes with which the compiler accepts the kernel."""
        if self.subject.is_on(PLANNING) is False:
            return
        for plan in self._possible(known, words):
            tiles = plan.program.tiles
            for memory in self._memories:
                limit = self.capacity.of(memory.value.lower())
                numbers = plan.tiles_in(memory)
                sizes = [tiles[n].bytes(known, words) for n in numbers]
                whole = [size for size in sizes if size is not None]
                if limit is None or len(whole) < len(sizes) or sum(whole) <= limit or not plan.conflicts:
                    continue  # as where there is a place for each
                intervals = [Interval(str(n), *plan.lives[n], size) for n, size in zip(numbers, whole, strict=True)]
                orders = list(shared(intervals, limit))
                for (kept, over), kind in plan.conflicts.items():
                    same = [pairs.get((str(kept), str(over))) for pairs in orders]
                    bad = [one is not None and not (one and kind.is_by_rows) for one in same]
                    if any(bad):
                        certain = kind.is_certain and all(bad) and not plan.program.unsure
                        yield Shared(tiles[kept], tiles[over], certain)

    def _possible(self, known: Values, words: Mapping[str, str]) -> Iterator[_Plan]:
        """The program for every outcome of the conditions that these sizes and types allow."""
        for tests, without in self._choices:
            if self._may_hold(tests, known, words):
                yield self._plan(known, without)

    def _may_hold(self, tests: _Tests, known: Values, words: Mapping[str, str]) -> bool:
        """False if a condition that Python decides is known to have another outcome."""
        for branch, outcome in tests:
            if not isinstance(branch.node, cst.If):
                continue
            if any(isinstance(branch.env.lookup(name.value), Closure) for name in _names_of(branch)):
                continue  # a parameter of a macro
            try:
                value = evaluate(branch.node.test, {**known, **words}, self.subject.file.names)
            except NoValue:
                continue
            if bool(value) is not outcome:
                return False
        return True

    def _plan(self, known: Values, without: frozenset[Arm]) -> _Plan:
        """The program for one outcome of the conditions; the same for sizes that give loops the same form."""
        key = without, tuple(_form(loop, known, self._halved) for loop in self._loops)
        if key not in self._plans:
            program = Builder(self.subject, without, known, self.target).build()
            self._plans[key] = _Plan(program, lifetimes(program.steps))
        return self._plans[key]

    def _place(
        self, plan: _Plan, memory: Memory, limit: int, known: Values, words: Mapping[str, str]
    ) -> tuple[Placement, Interval | None]:
        """What becomes of the tiles of a memory, with the tile that finds no place, or the largest one."""
        numbers = [n for n in plan.tiles_in(memory) if self._only is None or plan.program.tiles[n].name in self._only]
        sizes: _Sizes = tuple(plan.program.tiles[n].bytes(known, words) for n in numbers)
        key = id(plan), memory, sizes
        if key not in self._placed:
            tiles = [
                Interval(plan.program.tiles[n].name, *plan.lives[n], size)
                for n, size in zip(numbers, sizes, strict=True)
                if size is not None
            ]
            merged = {plan.program.tiles[n].name for n in numbers if n in plan.program.merged}
            unsure = plan.program.unsure or bool(merged)
            found, tile = self._verdict(tiles, limit, None in sizes, unsure)
            if merged and found.fit is Fit.NEVER:
                fewer = [interval for interval in tiles if interval.name not in merged]
                without, _ = self._verdict(fewer, limit, None in sizes, unsure)
                found = found if without.fit is Fit.NEVER else replace(found, fit=Fit.DOUBTFUL)
            self._placed[key] = found, tile
        return self._placed[key]

    def _verdict(
        self, tiles: list[Interval], limit: int, incomplete: bool, unsure: bool
    ) -> tuple[Placement, Interval | None]:
        largest = max(tiles, key=lambda tile: tile.size, default=None)
        total = sum(tile.size for tile in tiles)
        if self.subject.is_on(PLANNING) is False:
            return Placement(Fit.NEVER if total > limit else Fit.CERTAIN, total), largest
        found = place(tiles, limit)
        if found.peak > limit:
            return Placement(Fit.NEVER, found.peak), largest
        if incomplete:
            return Placement(Fit.CERTAIN, found.peak), largest  # nothing is said of sizes that are not known
        if unsure and total > limit:
            return Placement(Fit.DOUBTFUL, found.peak), largest
        return found, found.failed or largest

    def _takes_parts_of_columns(self, stmt: Op) -> bool:
        """Newer templates of AscendC take as many columns of B as fit, unless B is transposed: #1312."""
        flipped = stmt.args.get("transpose_B")
        plain = flipped is None or (isinstance(flipped, Scalar) and flipped.sym.is_zero)
        return plain and self.subject.compiler.tiles_columns and self.target != PTO

    def _operands(self, stmt: Op, known: Values, words: Mapping[str, str]) -> Iterator[Overflow]:
        """L0A and L0B: the whole operand, or two slots of 128 (``kL0Size``) in K where K is longer."""
        depth = depth_of(stmt)
        for name, memory in (("A", "l0a"), ("B", "l0b")):
            operand = stmt.args.get(name)
            limit = self.capacity.of(memory)
            if not isinstance(operand, Operand) or depth is None or limit is None or len(operand.buffer.shape) < 2:
                continue
            size = ITEM_SIZE.get(words.get(operand.buffer.dtype, operand.buffer.dtype))
            count = operand.buffer.shape[-2] * operand.buffer.shape[-1]
            total, deep = count.evaluate(known), depth.evaluate(known)
            if size is None or total is None or not deep:
                continue
            need = total * size
            step = _step(stmt, known)
            if deep > step:
                if self.target == PTO:
                    continue
                need = 2 * (total // deep) * step * size
            if name == "B" and self._takes_parts_of_columns(stmt):
                continue
            if need > limit:
                yield Overflow(memory.upper(), limit, need, operand.buffer.name, need, stmt.node)
                return


def _step(stmt: Op, known: Values) -> int:
    given = stmt.args.get("kL0Size")
    return (given.sym.evaluate(known) if isinstance(given, Scalar) else None) or _K_STEP


def _form(loop: Loop, known: Values, halved: frozenset[Range]) -> tuple[int | None, ...]:
    """The stages of a loop, and its turns: all more than those of which the program differs are the same."""
    stages = number_of(loop.num_stages, known) if loop.num_stages is not None else 0
    turns = [item.extent.evaluate(known) for item in loop.ranges]
    if loop.kind == "unroll":
        return stages, *turns
    most = 2 if all(item.step is None and item not in halved for item in loop.ranges) else 3
    most = max(most, 2 * (stages or 0) + 2) if loop.kind == "pipelined" else most
    return stages, *(min(count, most) if count is not None else None for count in turns)


def _names_of(branch: Branch) -> Sequence[cst.Name]:
    return names_in(branch.node.test) if isinstance(branch.node, cst.If) else ()


_Tests = tuple[tuple[Branch, bool], ...]


def _choices(subject: Subject) -> Iterator[tuple[_Tests, frozenset[Arm]]]:
    """The outcomes of the conditions that Python decides, each with the arms that are not there."""
    tests: dict[str, list[Branch]] = {}
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Branch) or not isinstance(stmt.node, cst.If):
            continue
        if subject.late.python_decides(stmt):
            tests.setdefault(code(stmt.node.test), []).append(stmt)
    if len(tests) > _CONDITIONS:
        tests = dict(itertools.islice(tests.items(), _CONDITIONS))
    for outcome in itertools.product((True, False), repeat=len(tests)):
        pairs = list(zip(outcome, tests.values(), strict=True))
        yield (
            tuple((same[0], holds) for holds, same in pairs),
            frozenset((branch, not holds) for holds, same in pairs for branch in same),
        )
