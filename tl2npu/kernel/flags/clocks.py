"""Which accesses of a block nothing orders: its cores and their pipes run with vector clocks, without data.

A pipe goes on after what the scalar unit has waited for; flags and barriers join clocks. Loops turn a few times, as
often as their indices take to come round; of a condition that is not known both arms run, so that what they wait for
counts. Two accesses conflict only if they certainly share an element. The rules are those of the simulator
(:mod:`tl2npu.simulator.hazards`), which runs the kernel with its data.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from math import lcm
from operator import ge

from tl2npu.dialects.ascend.sync import RESULT_OF_SCALAR_UNIT
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import side_of
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.flags.automatic import Automatic, on_side, pipe_on, waits_around
from tl2npu.kernel.flags.listed import singles
from tl2npu.kernel.flags.parts import GiveUp, no_flags_in
from tl2npu.kernel.flags.pipes import PIPES, Part, Touch, exchanged, ordered_touches, pipe_of, touches_of, waits_for_all
from tl2npu.kernel.flags.queues import Queues
from tl2npu.kernel.flags.seen import Conflict, Seen, Stuck
from tl2npu.kernel.flags.terms import Condition, Terms, Unknown, value
from tl2npu.kernel.model import (
    Branch,
    Buffer,
    Copy,
    Inlined,
    Kernel,
    Loop,
    Memory,
    Op,
    Opaque,
    Range,
    ScopeBlock,
    Side,
    Stmt,
    Sync,
    walk,
)
from tl2npu.kernel.symbolic import Mod, Sym, ceildiv, const, var
from tl2npu.kernel.symbolic import Opaque as Load

_TURNS = 2
_PERIOD = 12
_STEPS = 12_000
_KEPT = 40
_NUMBER = {name: number for number, name in enumerate(PIPES)}
_CORES = (Side.CUBE, Side.VECTOR)
_MIXED = 2
_EVER = 1 << 30
_LANES = "T.Parallel"
"""In a turn: all values of some variables at once, of which the first stands for all."""

Clock = list[int]


@dataclass(eq=False)
class Run:
    """One block. ``pipes``: the pipes of a core run side by side, otherwise only the cores do. ``automatic``: the flags
    that the compiler inserts. ``accesses``: are looked at, or the flags alone. ``crosses``: the flags between the cores
    could be followed; ``exact``: so could every condition and loop.
    """

    kernel: Kernel
    evaluator: Evaluator
    values: Mapping[str, int]
    pipes: bool
    scopes: bool
    cores: tuple[Side, ...]
    vid: int = 0
    conflicts: list[Conflict] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    automatic: Automatic | None = None
    accesses: bool = True

    def __post_init__(self) -> None:
        named = {self.kernel.cid: 0, self.kernel.vid: self.vid}
        launch = {name: number for name, number in named.items() if name is not None}
        loops = frozenset(n for s in self.kernel.walk() if isinstance(s, Loop) for r in s.ranges for n in r.var.names)
        self.terms = Terms(self.evaluator, loops, frozenset(), {**self.values, **launch})
        self.numbers = {**self.values, **launch}
        self.period = min(_period(self.kernel, self.values), _PERIOD if self.automatic is None else _TURNS)
        self.size = len(PIPES) if self.pipes else 1
        count = self.size * len(_CORES)
        self.clocks: list[Clock] = [[0] * count for _ in range(count)]
        self.flags: dict[Hashable, deque[Clock]] = defaultdict(deque)
        self.crossing: dict[Hashable, deque[tuple[Clock, Sync]]] = defaultdict(deque)
        self.history: dict[Buffer, list[Seen]] = defaultdict(list)
        self.queues = {side: Queues() for side in self.cores}
        self.steps = self.loads = self.taken = 0
        self.later = self.cut = False
        self.exact = self.crosses = True
        self.doubtful: set[tuple[str, ...]] = set()
        self.shared = exchanged(self.kernel)
        self.known: dict[tuple[tuple[int, bool], tuple[int | None, ...]], list[tuple[Touch, Part]]] = {}
        self.touched: dict[tuple[int, bool], tuple[list[Touch], tuple[str, ...], bool]] = {}
        self.listed: dict[int, list[Sync] | None] = {}
        self.texts: dict[tuple[int, str], str] = {}
        self.conditions: dict[int, Condition] = {}

    def go(self) -> None:
        """Run the cores in turn until none goes on. Raises :class:`GiveUp` where that says nothing."""
        programs = {side: self._block(self.kernel.body, side, {}, frozenset()) for side in self.cores}
        waiting: dict[Side, tuple[Sync, Hashable]] = {}
        moved = True
        while moved:
            moved = False
            for side in list(programs):
                before, found = self.taken, next(programs[side], None)
                moved = moved or found is None or waiting.get(side) != found or self.taken != before
                if found is not None:
                    waiting[side] = found
                    continue
                del programs[side]
                waiting.pop(side, None)
        for side, (stmt, flag) in waiting.items():
            self.stuck.append(Stuck(stmt, side, _flag(flag), False))
        if not waiting:
            left = ((key, stmt) for key, queue in self.crossing.items() for _, stmt in queue)
            self.stuck += [Stuck(stmt, _other(key), _flag(key), True) for key, stmt in left]

    # statements ------------------------------------------------------------------------------------------------------

    def _block(
        self, body: Sequence[Stmt], side: Side, turn: dict[str, int | None], arms: frozenset[tuple[int, bool, Hashable]]
    ) -> Iterator[tuple[Sync, Hashable]]:
        for stmt in body:
            self.steps += 1
            if self.steps > _STEPS:
                raise GiveUp
            if isinstance(stmt, ScopeBlock):
                if stmt.side is side:
                    yield from self._block(stmt.body, side, turn, arms)
            elif isinstance(stmt, Inlined):
                yield from self._block(stmt.body, side, turn, arms)
            elif isinstance(stmt, Sync):
                if id(stmt) not in self.listed:
                    self.listed[id(stmt)] = singles(stmt, self.evaluator)
                for one in self.listed[id(stmt)] or ():
                    yield from self._sync(one, side, turn)
                if self.listed[id(stmt)] is None:
                    raise GiveUp
            elif isinstance(stmt, Opaque):
                no_flags_in(stmt)
            elif self._elsewhere(stmt, side):
                continue
            else:
                self._touch(stmt, side, turn, arms)
                if isinstance(stmt, Loop):
                    yield from self._loop(stmt, side, turn, arms)
                elif isinstance(stmt, Branch):
                    yield from self._branch(stmt, side, turn, arms)
                elif isinstance(stmt, Op) and stmt.op.name == "loop_break":
                    raise GiveUp

    def _elsewhere(self, stmt: Stmt, side: Side) -> bool:
        """A statement outside of all scopes that only the other core can run."""
        if self.scopes and isinstance(stmt, (Loop, Branch)):
            return False
        return len(self.cores) == _MIXED and side_of(stmt) not in (side, Side.BOTH, Side.NONE)

    def _branch(
        self, stmt: Branch, side: Side, turn: dict[str, int | None], arms: frozenset[tuple[int, bool, Hashable]]
    ) -> Iterator[tuple[Sync, Hashable]]:
        if id(stmt) not in self.conditions:
            self.conditions[id(stmt)] = self.terms.condition(stmt.cond.node, stmt.env)
        holds = _holds(self.conditions[id(stmt)], turn)
        if holds is not None:
            self._apart(stmt, side)
            yield from self._block(stmt.then if holds else stmt.orelse, side, turn, arms)
            self._apart(stmt, side)
            return
        self.exact = False
        self._doubt(stmt)
        now = tuple(turn.items())
        for arm, body in ((True, stmt.then), (False, stmt.orelse)):
            self._apart(stmt, side)
            yield from self._block(body, side, turn, arms | {(id(stmt), arm, now)})
        self._apart(stmt, side)

    def _apart(self, stmt: Branch, side: Side) -> None:
        """The automatic flags begin anew in each arm of a branch, behind a barrier."""
        if self.automatic is not None and waits_around(stmt, side, self.values.keys()):
            self._barrier(_CORES.index(side) * self.size)
            self.automatic.latest[side].clear()

    def _doubt(self, stmt: Branch) -> None:
        """Flags that an arm sets and does not wait for: whether their waits order anything cannot be told."""
        for arm in (stmt.then, stmt.orelse):
            counts: dict[tuple[str, ...], int] = defaultdict(int)
            for sync in (inner for inner in walk(arm) if isinstance(inner, Sync)):
                name = sync.op.name
                if name.endswith("_cross_flag"):
                    self.crosses = False
                elif name in ("set_flag", "wait_flag"):
                    pipes = (self._pipe(sync, "src"), self._pipe(sync, "dst"), sync.text("eventId"))
                    counts[pipes] += 1 if name == "set_flag" else -1
            self.doubtful |= {pipes[:2] for pipes, count in counts.items() if count}
        for queues, (src, dst) in product(self.queues.values(), sorted(self.doubtful)):
            queues.let_pass(src, dst)

    def _loop(
        self, stmt: Loop, side: Side, turn: dict[str, int | None], arms: frozenset[tuple[int, bool, Hashable]]
    ) -> Iterator[tuple[Sync, Hashable]]:
        if stmt.kind == "parallel":
            yield from self._block(stmt.body, side, {**turn, **{str(r.var): 0 for r in stmt.ranges}, _LANES: 0}, arms)
            return
        if len(stmt.ranges) != 1:
            self.exact = False
            for number in range(_TURNS):
                self.later = self.later or number > 0
                later = {str(item.var): None for item in stmt.ranges}
                yield from self._block(stmt.body, side, {**turn, **later, f"turn {id(stmt)}": number}, arms)
            return
        for number in self._turns(stmt.ranges[0], turn):
            yield from self._block(stmt.body, side, {**turn, str(stmt.ranges[0].var): number}, arms)

    def _turns(self, item: Range, turn: dict[str, int | None]) -> Iterator[int]:
        """The values of a loop variable that are looked at: the first and the last ones, an even round apart."""
        step = item.step or const(1)
        try:
            by, count = self._value(step, turn), self._value(ceildiv(item.extent, step), turn)
            known = True
        except Unknown:
            self.exact = known = False
            by, count = 1, 2 * self.period
        try:
            start = self._value(item.start, turn)
        except Unknown:
            start = 0
        rounds = max(0, (count - self.period - 1) // self.period - 1) * self.period
        for number in chain(range(min(self.period, count)), range(self.period + rounds, count)):
            self.later = self.later or (not known and number > 0)
            self.cut = self.cut or bool(rounds and number >= self.period)
            yield start + number * by

    def _value(self, sym: Sym, turn: dict[str, int | None]) -> int:
        term = self.terms.term(sym)
        if term is None:
            raise Unknown
        return value(term, {name: number for name, number in turn.items() if number is not None})

    # accesses --------------------------------------------------------------------------------------------------------

    def _touch(
        self, stmt: Stmt, side: Side, turn: dict[str, int | None], arms: frozenset[tuple[int, bool, Hashable]]
    ) -> None:
        first = _CORES.index(side) * self.size
        if waits_for_all(stmt):
            self.queues[side].put(stmt, None, False, self.later, self.cut)
        if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM and side is Side.CUBE:
            self.queues[side].product(stmt, self.later, self.cut)
        if not self.accesses:
            return
        found = self._touches(stmt, turn, _LANES in turn)
        if self.pipes and waits_for_all(stmt):
            self._barrier(first)
        if self.automatic is not None:
            found = self._ordered(self.automatic, stmt, side, found, _LANES in turn)
        started: set[int] = set()
        for touch, part in found:
            thread = first + (_NUMBER[touch.pipe] if self.pipes else 0)
            if thread not in started:
                started.add(thread)
                self._follow(thread, first)
                if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM and self.pipes:
                    self._product(first)
            time = self.clocks[thread][thread] + 1
            seen = Seen(stmt, side, touch, part, thread, time, arms)
            self._judge(seen)
            self.history[touch.buffer].append(seen)
        for thread in started:
            self.clocks[thread][thread] += 1
        if isinstance(stmt, Op) and stmt.op.name in RESULT_OF_SCALAR_UNIT and self.pipes:
            self._follow(first, first + _NUMBER["V"])
        if started and isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM and self.pipes:
            self._follow(first + _NUMBER["MTE1"], first + _NUMBER["M"])
            self._follow(first + _NUMBER["MTE2"], first + _NUMBER["MTE1"])
            self._follow(first + _NUMBER["FIX"], first + _NUMBER["M"])

    def _ordered(
        self, automatic: Automatic, stmt: Stmt, side: Side, found: list[tuple[Touch, Part]], parallel: bool
    ) -> list[tuple[Touch, Part]]:
        """Let the statement wait as the compiler makes it wait; what this core itself touches."""
        first, own = _CORES.index(side) * self.size, {id(touch) for touch in on_side(side, (t for t, _ in found))}
        if id(stmt) in automatic.barriers or any(touch.element for touch, _ in found):
            self._barrier(first)
        pipe = pipe_on(side, stmt, parallel)
        crosses = pipe != pipe_of(stmt, parallel)
        found = [(replace(touch, pipe=pipe) if crosses else touch, part) for touch, part in found if id(touch) in own]
        for src, dst in automatic.flags(side, stmt, (touch for touch, _ in found), parallel):
            self._follow(first + _NUMBER[src], first)
            self._follow(first + _NUMBER[dst], first + _NUMBER[src])
        return found

    def _product(self, first: int) -> None:
        """``gemm_v0`` waits for the loads of its operands and the stores of its result."""
        self._follow(first + _NUMBER["MTE1"], first)
        self._follow(first + _NUMBER["MTE1"], first + _NUMBER["MTE2"])
        self._follow(first + _NUMBER["M"], first + _NUMBER["FIX"])
        self._follow(first + _NUMBER["M"], first + _NUMBER["MTE1"])

    def _touches(self, stmt: Stmt, turn: dict[str, int | None], parallel: bool) -> list[tuple[Touch, Part]]:
        own = id(stmt), parallel
        if own not in self.touched:
            self.touched[own] = self._own_touches(stmt, parallel)
        touches, names, fixed = self.touched[own]
        numbers = tuple(map(turn.get, names))
        if not fixed or None in numbers:
            numbers = tuple(turn.values())
        found = self.known.get((own, numbers))
        if found is None:
            found = self.known[own, numbers] = [(touch, self._at(touch.part, turn)) for touch in touches]
        return found

    def _own_touches(self, stmt: Stmt, parallel: bool) -> tuple[list[Touch], tuple[str, ...], bool]:
        """What a statement touches, the names whose numbers say where, and whether these say it in every turn."""
        touches = list(ordered_touches(stmt, parallel, self.shared))
        syms = [sym for touch in touches for pair in touch.part or () for sym in pair if sym is not None]
        names = frozenset[str]().union(*(sym.names for sym in syms)) - self.numbers.keys()
        return touches, tuple(sorted(names)), not any(map(_is_loaded, syms))

    def _at(self, part: Part, turn: dict[str, int | None]) -> Part:
        """The part with the numbers of the turn; what is loaded or changes on its own is another one in each turn."""
        if part is None:
            return None
        return tuple((self._number(lo, turn), None if n is None else self._number(n, turn)) for lo, n in part)

    def _number(self, sym: Sym, turn: dict[str, int | None]) -> Sym:
        if sym.constant is not None:
            return sym
        known: dict[str, Sym | int] = {}
        for name in sym.names:
            if name in self.numbers:
                known[name] = self.numbers[name]
            elif turn.get(name) is not None:
                known[name] = turn[name] or 0
            elif name in turn or "@" in name:
                known[name] = var(f"{name} {tuple(turn.values())}")
        found = sym.substitute(known)
        if _is_loaded(found):
            self.loads += 1
            return var(f"load {self.loads}")
        return found

    def _judge(self, seen: Seen) -> None:
        before = self.history[seen.touch.buffer]
        clock = self.clocks[seen.thread]
        for earlier in reversed(before):
            if earlier.thread == seen.thread or clock[earlier.thread] >= earlier.time:
                continue
            if (seen.touch.writes or earlier.touch.writes) and _clash(earlier, seen) and not self._refills(seen):
                late = not seen.touch.writes and any(self._precedes(one, seen) for one in before)
                self.conflicts.append(Conflict(seen, earlier) if late else Conflict(earlier, seen))
                break
        if seen.touch.writes and not seen.arms and seen.touch.buffer.memory is not Memory.GM:
            before[:] = [earlier for earlier in before if not seen.covers(earlier)]
        if len(before) > _KEPT:
            del before[: len(before) - _KEPT]

    def _precedes(self, write: Seen, read: Seen) -> bool:
        """A write of the other core that a read has waited for: what is not in order then comes too early, not late."""
        waited = self.clocks[read.thread][write.thread] >= write.time
        return write.touch.writes and waited and write.side is not read.side and read.meets(write)

    def _refills(self, seen: Seen) -> bool:
        """A load of what this statement has loaded before, into the same place: no value changes."""
        stmt = seen.stmt
        if not isinstance(stmt, Copy) or stmt.src.buffer.memory is not Memory.GM or stmt.src.buffer in self.shared:
            return False
        fixed = not any(name in self.terms.loops or "@" in name for name in _names(stmt))
        writes = [one for one in self.history[seen.touch.buffer] if one.touch.writes]
        return fixed and bool(writes) and all(one.stmt is stmt for one in writes)

    # flags -----------------------------------------------------------------------------------------------------------

    def _sync(self, stmt: Sync, side: Side, turn: dict[str, int | None]) -> Iterator[tuple[Sync, Hashable]]:
        first, name = _CORES.index(side) * self.size, stmt.op.name
        if self.automatic is not None and self.automatic.authors.get(id(stmt)) is not side:
            return
        if name == "barrier_all" or (name == "pipe_barrier" and self._pipe(stmt, "pipe") == "ALL"):
            self._barrier(first)
            self.queues[side].put(stmt, None, False, self.later, self.cut)
        elif name in ("set_flag", "wait_flag"):
            self._in_core(stmt, side, first, turn)
        elif name == "set_cross_flag":
            thread = first + (_NUMBER.get(self._pipe(stmt, "pipe"), 0) if self.pipes else 0)
            self._follow(thread, first)
            own = self._event(stmt, "mode", turn) in (0, 1)
            key = (side if own else _CORES[1 - _CORES.index(side)], self._event(stmt, "flag", turn))
            self.crossing[key].append((list(self.clocks[thread]), stmt))
        elif name == "wait_cross_flag":
            yield from self._wait(stmt, side, first, turn)
        elif name == "sync_all":
            raise GiveUp

    def _in_core(self, stmt: Sync, side: Side, first: int, turn: dict[str, int | None]) -> None:
        src, dst = (self._pipe(stmt, one) for one in ("src", "dst"))
        if src not in _NUMBER or dst not in _NUMBER:
            raise GiveUp
        sets = stmt.op.name == "set_flag"
        event = self._event(stmt, "eventId", turn)
        key = (side, src, dst, event)
        self.queues[side].put(stmt, (src, dst, event), sets, self.later, self.cut)
        if isinstance(event, str):
            self.queues[side].let_pass(src, dst)
        if not self.pipes:
            return
        thread = first + _NUMBER[src if sets else dst]
        self._follow(thread, first)
        if sets:
            self.flags[key].append(list(self.clocks[thread]))
        elif self.flags[key] and (src, dst) not in self.doubtful:
            self._join(thread, self.flags[key].popleft())
        else:  # which set it waits for cannot be told, or that is further on: what it orders is taken as given
            for pipe in range(first, first + self.size):
                self._follow(thread, pipe)
            self.clocks[thread][first + _NUMBER[src]] = _EVER

    def _wait(self, stmt: Sync, side: Side, first: int, turn: dict[str, int | None]) -> Iterator[tuple[Sync, Hashable]]:
        key = (side, self._event(stmt, "flag", turn))
        while not self.crossing[key] and self.crosses:
            yield stmt, key
        self.taken += 1
        if self.crosses:
            self._join(first, self.crossing[key].popleft()[0])
            return
        for thread in range(len(self.clocks)):
            self._follow(first, thread)

    def _pipe(self, stmt: Sync, name: str) -> str:
        key = id(stmt), name
        if key not in self.texts:
            arg = stmt.args.get(name)
            text = self.evaluator.static(arg.node, stmt.env) if arg is not None else ""
            if not isinstance(text, str):
                raise GiveUp
            self.texts[key] = text.upper().removeprefix("PIPE_")
        return self.texts[key]

    def _event(self, stmt: Sync, name: str, turn: dict[str, int | None]) -> Hashable:
        arg = stmt.args.get(name)
        if arg is None:
            return 2 if name == "mode" else 0
        try:
            return self._value(arg.sym, turn)
        except Unknown:
            self.exact = False
            return str(arg.sym)

    def _barrier(self, first: int) -> None:
        for thread in range(first + 1, first + self.size):
            self._follow(first, thread)

    def _follow(self, thread: int, other: int) -> None:
        if thread != other:
            self._join(thread, self.clocks[other])

    def _join(self, thread: int, clock: Clock) -> None:
        mine = self.clocks[thread]
        if not all(map(ge, mine, clock)):
            own = mine[thread]
            self.clocks[thread] = list(map(max, mine, clock))
            self.clocks[thread][thread] = own


def _clash(earlier: Seen, seen: Seen) -> bool:
    both = [isinstance(one.stmt, Op) and one.stmt.op.kind is Kind.ATOMIC for one in (earlier, seen)]
    if earlier.side is not seen.side and seen.touch.buffer.memory is not Memory.GM:
        return False  # each core has a memory of its own
    return earlier.stmt is not seen.stmt and not all(both) and seen.meets(earlier)


def _is_loaded(sym: Sym) -> bool:
    """Whether an element of a buffer is in it."""
    return any(isinstance(atom, Load) and atom.head.startswith("load ") for atom in sym.atoms())


def _names(stmt: Copy) -> set[str]:
    return {name for dim in (*(stmt.src.dims or ()), *(stmt.dst.dims or ())) for name in dim.lo.variables()}


def _other(key: Hashable) -> Side:
    receiver = key[0] if isinstance(key, tuple) else Side.CUBE
    return Side.VECTOR if receiver is Side.CUBE else Side.CUBE


def _flag(key: Hashable) -> Hashable:
    return key[1] if isinstance(key, tuple) else key


def _holds(condition: Condition, turn: Mapping[str, int | None]) -> bool | None:
    try:
        return condition.holds({name: number for name, number in turn.items() if number is not None})
    except (Unknown, ZeroDivisionError):
        return None


def _period(kernel: Kernel, values: Mapping[str, int]) -> int:
    """After so many turns the indices, events and conditions come round."""
    found = _TURNS
    for stmt in walk(kernel.body):
        syms = [arg.sym for arg in stmt.args.values()] if isinstance(stmt, Sync) else []
        syms += [stmt.cond.sym] if isinstance(stmt, Branch) else []
        syms += [lo for touch in touches_of(stmt, False) for lo, _ in touch.part or ()]
        for sym in syms:
            for atom in sym.atoms():
                size = atom.den.evaluate(values) if isinstance(atom, Mod) else None
                if size is not None and 0 < size <= _PERIOD:
                    found = lcm(found, size)
    if found > _PERIOD:
        raise GiveUp
    return found
