"""What one block of a kernel does, as cycles of the pipes: its statements, each as often as it runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, zip_longest

import libcst as cst

from tl2npu.checks.operators.expr import Expr
from tl2npu.checks.operators.gemm import depth_of
from tl2npu.checks.operators.vector_form import ParallelStore, for_types, parallel_store
from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import Subject
from tl2npu.cost import rates
from tl2npu.cost.rates import Instruction, Pipe, Rates
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.concrete import evaluate
from tl2npu.kernel.flags.terms import Terms, Unknown
from tl2npu.kernel.model import (
    CUBE_MEMORY,
    Branch,
    Buffer,
    Copy,
    Inlined,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    ScopeBlock,
    Stmt,
    Store,
    walk,
)
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Sym
from tl2npu.source.constants import NoValue

_FUNCTIONS = frozenset({"exp", "exp2", "log", "log2", "ln", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos", "pow"})
_QUOTIENTS = frozenset({"/", "div", "reciprocal", "//"})
_BY_ONE = frozenset({"abs", "cast", "relu", "fill", "adds", "muls", "copy", "neg", "leaky_relu", "createvecindex"})
_ASSUMED_TYPE = 4
_MOST_TURNS = 1 << 14


@dataclass(frozen=True)
class Part:
    """What a statement asks of a pipe: ``cycles`` in all, in ``times`` turns; each moves ``size`` bytes.

    ``elements``: those of one vector instruction, 1 where they are computed one by one.
    """

    stmt: Stmt
    pipe: Pipe
    cycles: float
    times: float
    size: float
    elements: float


class Work:
    """The walk through the body of a kernel, for sizes that are ``known`` and types that are ``words``.

    ``cycles`` of each pipe and ``bytes`` that it moves; ``count`` of its instructions; ``unknown``: what had to be
    assumed, in words; ``sized``: False if it is a size; ``parts``: the same by
    statement. ``turns`` of each loop, by its ``id``, in each of its ``runs``.
    """

    def __init__(self, subject: Subject, rate: Rates, known: Mapping[str, int], words: Mapping[str, str]) -> None:
        self.subject, self.rate, self.words = subject, rate, words
        self.known, self._sizes = dict(known), dict(known)
        self._values: dict[str, range] = {}
        self._lets: dict[str, int] = {}
        self.cycles: dict[Pipe, float] = defaultdict(float)
        self.bytes: dict[Pipe, float] = defaultdict(float)
        self.count: dict[Pipe, float] = defaultdict(float)
        self.unknown: dict[str, None] = {}
        self.sized = True
        self.parts: list[Part] = []
        self.turns: dict[int, float] = {}
        self.runs: dict[int, float] = {}
        self._now: Stmt | None = None
        split = split_of(subject) if subject.is_split else None
        self._halved_rows = frozenset(split.rows) if split is not None else frozenset[Range]()
        self._halved = split.halved if split is not None else set[Buffer]()
        self._placed = {id(placed.stmt): placed for placed in subject.statements}
        launch, cid = subject.kernel.launch, subject.kernel.cid
        if launch is not None and cid is not None and len(launch.grid) == 1:
            blocks = launch.grid[0].evaluate(known)
            self.known.setdefault(cid, blocks // 2 if blocks is not None else 0)
        if subject.kernel.vid is not None:
            self.known.setdefault(subject.kernel.vid, 0)
        self._walk(subject.kernel.body, 1.0)

    # how often --------------------------------------------------------------------------------------------------------

    def _walk(self, body: Sequence[Stmt], times: float) -> None:
        for stmt in body:
            self._statement(stmt, times)

    def _statement(self, stmt: Stmt, times: float) -> None:
        self._now = stmt
        if isinstance(stmt, Loop):
            turns = 1.0 if stmt.kind == "parallel" else self._turns(stmt)
            self.turns[id(stmt)], self.runs[id(stmt)] = turns, times
            self._walk(stmt.body, times * turns)
        elif isinstance(stmt, (ScopeBlock, Inlined)):
            self._walk(stmt.body, times)
        elif isinstance(stmt, Let):
            self._let(stmt)
        elif isinstance(stmt, Branch):
            self._branch(stmt, times)
        elif isinstance(stmt, Copy):
            self._copy(stmt, times)
        elif isinstance(stmt, Op):
            self._op(stmt, times)
        elif isinstance(stmt, Store):
            self._store(stmt, times)

    def _let(self, stmt: Let) -> None:
        """What a name stands for from here on; names that branches bind have no value of their own in the model."""
        value = self._value(stmt.value.sym)
        if value is None:
            try:
                found = evaluate(stmt.value.node, {**self.known, **self._lets, **self.words}, self.subject.file.names)
                value = found if isinstance(found, int) else None
            except NoValue:
                value = None
        self._lets.pop(stmt.name, None)
        if value is not None:
            self._lets[stmt.name] = value

    def _value(self, sym: Sym) -> int | None:
        """An integer here and now; None if it is not known."""
        found = sym.evaluate(self.known)
        if found is not None:
            return found
        bound = {name: self._lets[base] for name in sym.names if (base := name.partition("@")[0]) in self._lets}
        return sym.evaluate({**bound, **self.known}) if bound else None

    def _turns(self, loop: Loop) -> float:
        """The turns of a loop; in it, its variables have the value of the turn in the middle."""
        if loop.kind == "while":
            self.unknown["a `while` loop counts once"] = None
            return 1.0
        total = 1.0
        for item in loop.ranges:
            extent, start = self._value(item.extent), self._value(item.start)
            step = self._value(item.step) if item.step is not None else 1
            if extent is None or not step:
                self._without(f"the loop over `{item.name}` counts once: `{_written(item)}` is not known")
                extent, step = 1, 1
            turns = max(0, -(-extent // step))
            if item in self._halved_rows:
                turns = -(-turns // 2)
            self.known[str(item.var)] = (start or 0) + turns // 2 * step
            self._values[str(item.var)] = range(start or 0, (start or 0) + turns * step, step)
            total *= turns
        return total if loop.kind != "persistent" else math.ceil(total / self._wave(loop))

    def _wave(self, loop: Loop) -> int:
        """``T.Persistent(domain, wave_size, index)``: how many tasks are done at a time."""
        call = loop.call
        given = [arg for arg in call.args if arg.keyword is None or arg.keyword.value == "wave_size"] if call else []
        named = [arg for arg in given if arg.keyword is not None]
        try:
            found = evaluate((named or given[1:2])[0].value, {**self.known, **self._lets}, self.subject.file.names)
        except (NoValue, IndexError):
            found = None
        if not isinstance(found, int) or found < 1:
            self._without("a loop over tasks counts all of them: its waves are not known")
            return 1
        return found

    def _branch(self, stmt: Branch, times: float) -> None:
        """The arm that Python takes, or each as often as loops say; one that works beside one that only fills; else the
        longer one."""
        taken: object = None
        if isinstance(stmt.node, cst.If) and self.subject.late.python_decides(stmt):
            try:
                taken = bool(evaluate(stmt.node.test, {**self.known, **self.words}, self.subject.file.names))
            except NoValue:
                taken = None
        if taken is not None:
            self._walk(stmt.then if taken else stmt.orelse, times)
            return
        share = self._held(stmt)
        if share is not None:
            self._walk(stmt.then, times * share)
            self._walk(stmt.orelse, times * (1 - share))
            return
        arms = [arm for arm in (stmt.then, stmt.orelse) if not (arm and all(map(_only_fills, walk(arm))))]
        if len(arms) == 1 and arms[0]:
            self._walk(arms[0], times)
            self.unknown["an arm that only fills tiles, as outside of a tensor, counts as never taken"] = None
            return
        before = self._state()
        outcomes = []
        for arm in (stmt.then, stmt.orelse):
            self.cycles, self.bytes, self.count = (defaultdict(float, part) for part in before[:3])
            self.parts = [*before[3]]
            self._walk(arm, times)
            outcomes.append(self._state())
        self.cycles, self.bytes, self.count, self.parts = max(outcomes, key=lambda state: sum(state[0].values()))

    def _held(self, stmt: Branch) -> float | None:
        """In which part of the turns around it a condition holds; None if it depends on other things than these."""
        condition = self._terms.condition(stmt.cond.node, stmt.env)
        names = sorted(frozenset[str]().union(*(term.variables() for term in condition.terms())))
        around = [self._values.get(name) for name in names]
        values = [one for one in around if one is not None]
        if not values or len(values) < len(around) or math.prod(map(len, values)) > _MOST_TURNS:
            return None
        try:
            held = [condition.holds(dict(zip(names, turn, strict=True))) for turn in product(*values)]
        except (Unknown, ZeroDivisionError):
            return None
        return sum(held) / len(held) if held else None

    @cached_property
    def _terms(self) -> Terms:
        loops = (stmt for stmt in self.subject.kernel.walk() if isinstance(stmt, Loop))
        names = frozenset(str(one.var) for loop in loops for one in loop.ranges)
        return Terms(self.subject.located.evaluator, names, frozenset(), self._sizes)

    def _state(self) -> tuple[dict[Pipe, float], dict[Pipe, float], dict[Pipe, float], list[Part]]:
        return self.cycles, self.bytes, self.count, self.parts

    def _spend(self, pipe: Pipe, cycles: float, times: float, size: float = 0.0, elements: float = 0.0) -> None:
        self.cycles[pipe] += cycles * times
        self.bytes[pipe] += size * times
        self.count[pipe] += times
        assert self._now is not None
        self.parts.append(Part(self._now, pipe, cycles * times, times, size, elements))

    def _without(self, size: str) -> None:
        """A size is not known; what is done in its place, in words."""
        self.unknown[size] = None
        self.sized = False

    # how much ---------------------------------------------------------------------------------------------------------

    def _elements(self, operand: Operand) -> float | None:
        """The elements of a region; None for a start that says no extent. Beside slices an index is one element."""
        if operand.dims is None:
            return self._whole(operand.buffer)
        if all(dim.is_point and dim.extent is None for dim in operand.dims):
            return None
        total = 1.0
        for dim in operand.dims:
            extent = self._value(dim.extent) if dim.extent is not None else 1
            if extent is None:
                return None
            total *= extent
        return total

    def _whole(self, buffer: Buffer) -> float:
        total = 1.0
        for extent, node in zip_longest(buffer.shape, buffer.shape_nodes[: len(buffer.shape)]):
            value = self._value(extent)
            if value is None:
                said = extent if node is None else code(node)
                self._without(f"`{buffer.name}` counts as one row: `{said}` is not known")
                value = 1
            total *= value
        return total

    def _size(self, buffer: Buffer) -> int:
        """Bytes of an element."""
        found = ITEM_SIZE.get(self.words.get(buffer.dtype, buffer.dtype))
        if found is None:
            self.unknown[f"`{buffer.dtype}` is not known: 4 bytes an element"] = None
            return _ASSUMED_TYPE
        return found

    def _share(self, buffer: Buffer) -> float:
        """The part of a tile that one vector core has."""
        return 0.5 if buffer in self._halved else 1.0

    def _part(self, operand: Operand) -> float:
        """The part of a copy that one vector core makes: all of a row that a loop over its own rows picks."""
        picks = any(dim.is_point and item.var == dim.lo for item in self._halved_rows for dim in operand.dims or ())
        return 1.0 if picks else self._share(operand.buffer)

    # statements -------------------------------------------------------------------------------------------------------

    def _copy(self, stmt: Copy, times: float) -> None:
        src, dst = stmt.src.buffer, stmt.dst.buffer
        inner, outer = (stmt.dst, stmt.src) if src.memory is Memory.GM else (stmt.src, stmt.dst)
        found = [count for count in (self._elements(inner), self._elements(outer)) if count is not None]
        elements = min(found) if found else self._whole(inner.buffer)
        halved = min(self._part(stmt.src), self._part(stmt.dst))
        here, there = elements * self._size(src), elements * self._size(dst)
        if dst.memory in (Memory.L0A, Memory.L0B):
            self._move(Pipe.LOAD_L0, f"L1 to {dst.memory.value}", there, times)
        elif src.memory is Memory.L0C and dst.memory is Memory.L1:
            self._move(Pipe.FIXPIPE, "L0C to L1", there, times)
        elif src.memory is Memory.L0C:
            self._move(Pipe.FIXPIPE, "L0C to GM", there, times)
            if dst.memory is Memory.UB:  # by way of global memory
                self._move(Pipe.LOAD_UB, "GM to UB", there * halved, times)
        elif src.memory is Memory.UB and dst.memory in CUBE_MEMORY:
            self._move(Pipe.STORE_UB, "UB to GM", here * halved, times)
            self._move(Pipe.LOAD_L1, "GM to L1", there, times)
        elif src.memory is Memory.GM and dst.memory is Memory.L1:
            self._move(Pipe.LOAD_L1, "GM to L1", here, times)
        elif src.memory is Memory.GM and dst.memory is Memory.UB:
            self._move(Pipe.LOAD_UB, "GM to UB", here * halved, times)
        elif src.memory is Memory.UB and dst.memory is Memory.GM:
            self._move(Pipe.STORE_UB, "UB to GM", there * halved, times)
        elif src.memory is Memory.UB and dst.memory is Memory.UB:
            wider = max(self._size(src), self._size(dst))
            self._instruction(rates.WITH_NUMBER, elements * halved, wider, times)

    def _move(self, pipe: Pipe, way: str, size: float, times: float) -> None:
        self._spend(pipe, self.rate.transfer(way, size), times, size)

    def _instruction(self, kind: Instruction, elements: float, size: int, times: float) -> None:
        self._spend(Pipe.VECTOR, kind.cycles(elements, size), times, elements=elements)

    def _op(self, stmt: Op, times: float) -> None:
        kind = stmt.op.kind
        if kind in (Kind.GEMM, Kind.MMA):
            self._product(stmt, times)
            return
        operands = [operand for _, operand in stmt.operands]
        if not operands or kind not in (Kind.TILE, Kind.REDUCE, Kind.FILL, Kind.ATOMIC):
            return
        given = stmt.args.get("dst") or stmt.args.get("out") or stmt.args.get("buffer")
        out = given if isinstance(given, Operand) else operands[0]
        if kind is Kind.ATOMIC:
            source = next((one for one in operands if one.buffer.memory is not Memory.GM), out)
            size = (self._elements(source) or self._whole(source.buffer)) * self._size(source.buffer)
            self._move(Pipe.STORE_UB, "UB to GM", size * self._share(source.buffer), times)
        elif kind is Kind.REDUCE:
            self._reduction(stmt, operands, times)
        elif out.buffer.memory is Memory.UB:
            elements = (self._elements(out) or self._whole(out.buffer)) * self._share(out.buffer)
            name = stmt.op.name.rpartition(".")[2]
            if name == "broadcast":
                rows = self._rows(out.buffer)
                self._spend(Pipe.VECTOR, rates.BY_ROW.start + rates.BY_ROW.repeat * rows, times)
                return
            if not stmt.op.elementwise and kind is Kind.TILE and name not in _BY_ONE:
                self.unknown[f"`{stmt.op.name}` counts as one instruction on its result"] = None
            tiles = sum(operand.buffer.memory is Memory.UB for operand in operands)
            self._instruction(_kind_of(name, tiles > 2), elements, self._size(out.buffer), times)

    def _rows(self, buffer: Buffer) -> float:
        last = (self._value(buffer.shape[-1]) or 1) if buffer.shape else 1
        return self._whole(buffer) / max(1, last) * self._share(buffer)

    def _reduction(self, stmt: Op, operands: Sequence[Operand], times: float) -> None:
        given = stmt.args.get("src") or stmt.args.get("buffer")
        source = (
            given if isinstance(given, Operand) else max(operands, key=lambda one: self._whole(one.buffer))
        ).buffer
        rows, size = self._rows(source), self._size(source)
        columns = (self._value(source.shape[-1]) or 1) if source.shape else 1
        repeats = math.ceil(columns * size / rates.VECTOR_BYTES)
        axis = stmt.args.get("dim")
        along = getattr(getattr(axis, "sym", None), "constant", None)
        if along is not None and along in (0, -len(source.shape)) and len(source.shape) > 1:
            self._spend(Pipe.VECTOR, rates.COLUMN_START + rates.COLUMN_ROW * repeats * rows, times)
        else:
            cycles = rates.ROW_START + max(rates.ROW_LEAST, rates.ROW_REPEAT * repeats) * rows
            self._spend(Pipe.VECTOR, cycles, times)

    def _product(self, stmt: Op, times: float) -> None:
        left, right, out = (stmt.args.get(name) for name in ("A", "B", "C"))
        if not (isinstance(left, Operand) and isinstance(right, Operand) and isinstance(out, Operand)):
            return
        depth = depth_of(stmt)
        deep = self._value(depth) if depth is not None else None
        shape = [self._value(extent) for extent in out.buffer.shape[-2:]]
        if deep is None or len(shape) < 2 or None in shape:
            self._without(f"the sizes of `{code(stmt.call)}` are not known: it is left out")
            return
        rows, columns = (value or 1 for value in shape)
        size = self._size(left.buffer)
        if left.buffer.memory is Memory.L1:
            self._move(Pipe.LOAD_L0, "L1 to L0A", rows * deep * size, times)
        if right.buffer.memory is Memory.L1:
            self._move(Pipe.LOAD_L0, "L1 to L0B", columns * deep * size, times)
        self._spend(Pipe.CUBE, self.rate.product(rows, columns, deep, size), times)

    # T.Parallel -------------------------------------------------------------------------------------------------------

    def _store(self, stmt: Store, times: float) -> None:
        found = parallel_store(self.subject, self._placed[id(stmt)])
        if found is None:
            self._spend(Pipe.VECTOR, rates.ELEMENT, times, elements=1.0)
            return
        found = for_types(found, self.words)
        inner = self._extent(found.inner)
        rows = self._extent(found.outer) if found.outer is not None else 1.0
        for loop in found.nest:
            for item in loop.ranges:
                if item is not found.inner and item is not found.outer:
                    times *= self._extent(item)
        size = self._size(stmt.target.buffer)
        if found.form == "scalar":
            self._spend(Pipe.VECTOR, rates.ELEMENT, times * rows * inner, elements=1.0)
            self.unknown["element by element: 20 cycles an element are assumed"] = None
            return
        for kind in _instructions(found):
            if found.form == "rows":
                self._instruction(kind, inner, size, times * rows)
            else:
                self._instruction(kind, rows * inner, size, times)

    def _extent(self, item: Range) -> float:
        value = self._value(item.extent)
        if value is None:
            self._without(f"`{item.name}` counts as one element: `{_written(item)}` is not known")
            value = 1
        return math.ceil(value / 2) if item in self._halved_rows else float(value)


def _written(item: Range) -> str:
    """How often a loop runs, as its source says it."""
    if item.stop_node is None:
        return str(item.extent)
    return " - ".join(code(node) for node in (item.stop_node, item.start_node) if node is not None)


def _only_fills(stmt: Stmt) -> bool:
    """A tile is filled, or one of its elements set, with a value that comes from no tile."""
    if isinstance(stmt, Op):
        return stmt.op.kind is Kind.FILL
    return isinstance(stmt, Store) and not stmt.augmented and not stmt.value.loads


def _kind_of(name: str, two: bool) -> Instruction:
    """The instruction of an operator; ``two``: of two tiles."""
    if name in _QUOTIENTS:
        return rates.QUOTIENT
    if name in _FUNCTIONS:
        return rates.FUNCTION
    return rates.TWO_TILES if two and name not in _BY_ONE else rates.WITH_NUMBER


def _instructions(store: ParallelStore) -> list[Instruction]:
    """One instruction for each operation of the value; a copy for a value without one."""
    found: list[Instruction] = []
    for part in store.value.walk():
        if part.kind in ("binary", "unary", "call"):
            two = sum(_is_tile(arg, store) for arg in part.args) > 1
            found.append(_kind_of(part.name, two))
    return found or [rates.WITH_NUMBER]


def _is_tile(part: Expr, store: ParallelStore) -> bool:
    """Whether a part changes along the columns; what does not is a number for the instruction of a row."""
    return part.kind != "number" and (store.form == "vector" or part.depends_on(store.inner))
