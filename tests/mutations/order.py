"""What orders the memory accesses of a launch, from the hardware's rules alone.

A judge of mutants that shares nothing with ``tl2npu.simulator.hazards`` and ``tl2npu.kernel.flags``: the machine tells
it of every access with its concrete bytes and of every flag and barrier; each instruction knows the set of all that
come before it, and all pairs are compared. **A hazard**: two accesses of one byte, one of which writes, on different
pipes or cores, and no path of flags and barriers leads from the first to the second.

The rules: a core issues its instructions in program order and its scalar unit waits for none of them; the
instructions of one pipe are in order; ``set_flag`` waits for what its pipe was given, ``wait_flag`` holds its pipe;
``barrier_all`` holds the scalar unit until all pipes are done (CANN: SetFlag/WaitFlag(ISASI), PipeBarrier(ISASI)).
``T.gemm_v0`` sets and waits for flags of its own (``tl_templates/ascend/common.h:591-650``), as a load that is clipped
does around its fill (``common.h:copy_gm_to_ub``). The element that is the scalar of an arithmetic operator is read
behind a barrier of all pipes (``codegen_ascend.cc:1332``), others at once. The scalar unit stores the result of
``AscendC::ReduceSum`` by a count itself (CANN, ``dav_c220/kernel_operator_vec_reduce_impl.h``).
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.stmt import Op, Site, Store
from tl2npu.simulator.machine.access import Access

PIPES = ("S", "MTE1", "MTE2", "MTE3", "M", "V", "FIX")
CHIP = {
    ("global", "ub"): "MTE2",
    ("global", "l1"): "MTE2",
    ("global", "l0a"): "MTE2",
    ("global", "l0b"): "MTE2",
    ("ub", "global"): "MTE3",
    ("l1", "global"): "MTE3",
    ("ub", "l1"): "MTE3",
    ("l1", "l0a"): "MTE1",
    ("l1", "l0b"): "MTE1",
    ("l0a", "l0c"): "M",
    ("l0b", "l0c"): "M",
    ("l0c", "global"): "FIX",
    ("l0c", "l1"): "FIX",
    ("l0c", "ub"): "FIX",
    ("ub", "ub"): "V",
    ("", "ub"): "V",
    ("", "l1"): "MTE2",
    ("", "l0c"): "M",
    ("", "global"): "MTE3",
}
"""From which memory to which: the pipe (CANN, "Hardware Pipelines")."""

BEHIND_BARRIER = {f"tile.{name}" for name in ("add", "sub", "mul", "div", "max", "min", "compare", "select")}

Core = tuple[int, str, int]
Pair = tuple[str, str, str]
"""A hazard: the buffer, and the lines of both accesses."""


@dataclass(eq=False)
class Order:
    """The instructions of a launch: of each the set (bits of one number) of those that come before it."""

    apart: frozenset[str] = frozenset()
    """Pipes whose instructions overlap unless a barrier of the pipe, or a flag, stands between them."""
    count: int = 0
    done: dict[tuple[Core, str], int] = field(default_factory=lambda: defaultdict(int))
    """Of a pipe: what it was given so far, with all that comes before that."""
    gate: dict[tuple[Core, str], int] = field(default_factory=lambda: defaultdict(int))
    """Of a pipe: what anything that it is given from now on comes after."""

    def so_far(self, core: Core, pipe: str) -> int:
        """What a flag that the pipe sets now stands for."""
        return self.done[core, pipe] | self.gate[core, pipe] | self.done[core, "S"] | self.gate[core, "S"]

    def instruction(self, core: Core, pipe: str) -> tuple[int, int]:
        """A new one: its number, and what comes before it."""
        before, number = self.so_far(core, pipe), self.count
        self.count += 1
        self.done[core, pipe] |= before | 1 << number
        if pipe in self.apart:
            before = self.gate[core, pipe] | self.done[core, "S"] | self.gate[core, "S"]
        return number, before

    def hold(self, core: Core, pipe: str, token: int) -> None:
        """The pipe goes on after all of these."""
        self.gate[core, pipe] |= token

    def follow(self, core: Core, later: str, earlier: str) -> None:
        """A flag from one pipe to another, set and waited for at once."""
        self.hold(core, later, self.so_far(core, earlier))

    def barrier(self, core: Core) -> None:
        """All pipes of a core."""
        self.hold(core, "S", self.everything(core))

    def everything(self, core: Core) -> int:
        """What all pipes of a core were given."""
        return reduce(int.__or__, (self.so_far(core, pipe) for pipe in PIPES))


@dataclass(frozen=True)
class Touched:
    """One access of an instruction: ``region`` is the number of a set of bytes."""

    number: int
    pipe: tuple[Core, str]
    before: int
    region: int
    writes: bool
    atomic: bool
    buffer: str
    line: str


class Trace:
    """Watches a launch, as ``tl2npu.simulator.machine.watch.Watcher`` says.

    ``pairs``: the hazards that it had; ``flags``: what is wrong with its flags; ``apart``: see :class:`Order`.
    """

    def __init__(self, apart: frozenset[str] = frozenset()) -> None:
        self.apart = apart
        self.pairs: set[Pair] = set()
        self.flags: set[str] = set()
        self.kept: list[np.ndarray] = []
        self.regions: dict[Any, int] = {}
        self.bytes: list[np.ndarray] = []
        self.shared: dict[tuple[int, int], bool] = {}

    # launches and blocks

    def begin(self, runner: Any, arrays: dict[int, np.ndarray], made: Any) -> None:
        self.runner = runner
        self._fresh()

    def _fresh(self) -> None:
        self.order = Order(self.apart)
        self.touched: list[Touched] = []
        self.cores: dict[Core, Recorded] = {}
        self.queues: dict[Any, deque[int]] = defaultdict(deque)

    def access(self, core: Any, names: dict[int, str], sites: list[Site]) -> Access:
        found = self.cores[_core(core)] = Recorded(self, _core(core), names, sites)
        return found

    def _now(self, core: Any) -> Core:
        """The core, what it was doing being over."""
        self.cores[_core(core)].settle()
        return _core(core)

    def end_block(self, number: int, left: Any) -> None:
        self._judge(left)
        self._fresh()

    def end(self, runner: Any, left: Any) -> None:
        self._judge(left)

    def finish(self) -> None:
        """The call is over; each launch is judged by itself."""

    def deadlock(self, waiting: Any) -> None:
        self.flags.add("deadlock")

    def _judge(self, left: Any) -> None:
        """Compare all instructions with all that were given before them, grouped by what they touch."""
        self.flags |= {f"flag {flag} is left" for _, flag, _ in left}
        self.flags |= {f"flag {key[1:]} is left" for key, queue in self.queues.items() if queue}
        groups: dict[tuple[int, bool, bool], list[Touched]] = defaultdict(list)
        for one in self.touched:
            groups[one.region, one.writes, one.atomic].append(one)
        for first, mine in groups.items():
            for second, others in groups.items():
                if (first[1] or second[1]) and not (first[2] and second[2]) and self._overlap(first[0], second[0]):
                    self._compare(mine, others)

    def _compare(self, mine: list[Touched], others: list[Touched]) -> None:
        numbers = reduce(int.__or__, (1 << one.number for one in mine))
        for late in others:
            loose = numbers & ((1 << late.number) - 1) & ~late.before
            if loose:
                found = [one for one in mine if loose >> one.number & 1 and (one.writes or one.pipe != late.pipe)]
                self.pairs |= {(one.buffer, one.line, late.line) for one in found}

    def _overlap(self, first: int, second: int) -> bool:
        key = (min(first, second), max(first, second))
        if key not in self.shared:
            a, b = self.bytes[first], self.bytes[second]
            apart = not a.size or not b.size or a[-1] < b[0] or b[-1] < a[0]
            self.shared[key] = not apart and np.intersect1d(a, b, assume_unique=True).size > 0
        return self.shared[key]

    # accesses

    def region(self, array: np.ndarray, key: Any) -> int:
        """The number of the bytes that a part of an array has."""
        name = (array.ctypes.data, array.shape, array.strides, _plain(key))
        if name not in self.regions:
            self.kept.append(array)
            steps = [np.arange(n) * step for n, step in zip(array.shape, array.strides, strict=True)]
            chosen = np.asarray(reduce(np.add.outer, steps, np.int64(array.ctypes.data))[key]).ravel()
            self.regions[name] = len(self.bytes)
            self.bytes.append(np.unique(chosen[:, None] + np.arange(array.itemsize)))
        return self.regions[name]

    def instruction(self, core: Core, pipe: str, parts: list[tuple[int, np.ndarray, Any, str]], line: str) -> None:
        """Give a pipe an instruction that touches these parts."""
        number, before = self.order.instruction(core, pipe)
        for buffer, array, key, kind in parts:
            name = self.runner.names[buffer]
            region = self.region(array, key)
            for way in {"r": "r", "w": "w", "rw": "rw", "a": "a"}[kind]:
                self.touched.append(Touched(number, (core, pipe), before, region, way != "r", way == "a", name, line))

    def memory(self, number: int) -> str:
        """The memory of a buffer."""
        buffer = self.runner.buffers[number]
        while buffer.alias is not None:
            buffer = buffer.alias
        return str(buffer.memory)

    # flags and barriers

    def release(self, core: Any, site: int, pipe: str, flag: Any) -> int:
        return self.order.so_far(self._now(core), _pipe(pipe))

    def merge(self, tokens: list[int]) -> int:
        return reduce(int.__or__, tokens)

    def acquire(self, core: Any, site: int, pipe: str, flag: Any, token: int) -> None:
        self.order.hold(self._now(core), _pipe(pipe), token)

    def too_many(self, core: Any, site: int, flag: Any, count: int) -> None:
        self.flags.add(f"cross flag {flag} is set too often")

    def arrive_all(self, core: Any, site: int) -> int:
        return self.order.everything(self._now(core))

    def leave_all(self, core: Any, site: int, tokens: list[int]) -> None:
        self.order.hold(self._now(core), "S", self.merge(tokens))

    def set_flag(self, core: Any, site: int, src: str, dst: str, number: int) -> None:
        me = self._now(core)
        self.queues[me, _pipe(src), _pipe(dst), number].append(self.order.so_far(me, _pipe(src)))

    def wait_flag(self, core: Any, site: int, src: str, dst: str, number: int) -> None:
        me = self._now(core)
        queue = self.queues[me, _pipe(src), _pipe(dst), number]
        if queue:
            self.order.hold(me, _pipe(dst), queue.popleft())
        else:
            self.flags.add(f"flag {src} {dst} {number} is waited for before it is set")

    def pipe_barrier(self, core: Any, site: int, pipe: str) -> None:
        me, one = self._now(core), _pipe(pipe)
        if one == "ALL":
            self.order.barrier(me)
        else:
            self.order.follow(me, one, one)


class Recorded(Access):
    """Tells the trace what a core touches, statement by statement."""

    def __init__(self, trace: Trace, core: Core, names: dict[int, str], sites: list[Site]) -> None:
        super().__init__(names, sites)
        self.trace, self.me = trace, core
        self.statement: Any = None
        self.in_parallel = False
        self.line = -1
        self.parts: list[tuple[int, np.ndarray, Any, str]] = []
        self.element = False

    def begin(self, statement: int) -> None:
        self.settle()
        self.statement, self.in_parallel, self.line = self.trace.runner.watched_statements[statement]

    def settle(self) -> None:
        """The statement is over: its accesses become one instruction, or those that its template gives."""
        parts, self.parts = self.parts, []
        if not parts:
            return
        order, line = self.trace.order, str(self.sites[self.line])
        memories = [(self.trace.memory(n), kind) for n, _, _, kind in parts]
        read = next((m for m, kind in memories if "r" in kind), "")
        written = next((m for m, kind in memories if kind != "r"), "")
        if isinstance(self.statement, Store) and not self.in_parallel:
            self.give("S", parts, line)
        elif written == "l0c" and "l1" in [m for m, _ in memories]:
            order.follow(self.me, "MTE1", "MTE2")
            order.follow(self.me, "M", "FIX")
            order.follow(self.me, "MTE1", "M")
            self.give("MTE1", [p for p in parts if self.trace.memory(p[0]) == "l1"], line)
            order.follow(self.me, "M", "MTE1")
            self.give("M", [p for p in parts if self.trace.memory(p[0]) != "l1"], line)
            order.follow(self.me, "MTE1", "M")
            order.follow(self.me, "MTE2", "MTE1")
            order.follow(self.me, "FIX", "M")
        elif (read, written) == ("global", "ub") and parts[0][3] == "w":
            for pipe in ("MTE2", "MTE3"):
                order.follow(self.me, "V", pipe)
            self.give("V", parts[:1], line)
            order.follow(self.me, "MTE2", "V")
            self.give("MTE2", parts[1:], line)
        else:
            self.give(CHIP.get((read, written), "S" if not written else "V"), parts, line)
            if getattr(self.statement, "name", "") == "tile.reduce_sum_experiment":
                order.follow(self.me, "S", "V")

    def give(self, pipe: str, parts: list[tuple[int, np.ndarray, Any, str]], line: str) -> None:
        """One instruction; with automatic synchronisation a barrier follows it."""
        self.trace.instruction(self.me, pipe, parts, line)
        if self.trace.runner.automatic_sync:
            self.trace.order.barrier(self.me)

    def touch(self, number: int, array: np.ndarray, key: Any, kind: str, site: int) -> None:
        if self.trace.memory(number) == "var":
            return
        if self.element and not (self.in_parallel and site == self.line):
            self.scalar(number, array, key, site)
            return
        if site != self.line:
            self.settle()
        self.parts.append((number, array, key, kind))

    def scalar(self, number: int, array: np.ndarray, key: Any, site: int) -> None:
        """The scalar unit reads an element."""
        kept, self.parts = self.parts, []
        here = site == self.line
        if not here:
            self.parts = kept
            self.settle()
            kept = []
        elif _waits(self.statement):
            self.trace.order.barrier(self.me)
        self.give("S", [(number, array, key, "r")], str(self.sites[site]))
        self.parts = kept

    def load(self, number: int, array: np.ndarray, index: Any, site: int) -> Any:
        self.element = True
        try:
            return super().load(number, array, index, site)
        finally:
            self.element = False

    def whole(self, number: int, array: np.ndarray, kind: str, site: int) -> np.ndarray:
        self.touch(number, array, (slice(None),) * array.ndim, kind, site)
        return array

    def tail(self, number: int, array: np.ndarray, index: Any, kind: str, site: int) -> np.ndarray:
        for way in kind:
            self.touch(number, array, (slice(None),) * array.ndim, way, site)
        return super().tail(number, array, index, kind, site)


def _waits(statement: Any) -> bool:
    """Whether the scalar operand of an instruction is an element, and one that is read behind a barrier."""
    return isinstance(statement, Op) and statement.name in BEHIND_BARRIER and Load in map(type, statement.args.values())


def _core(core: Any) -> Core:
    return core.block, core.kind, core.number


def _pipe(name: str) -> str:
    return name.upper().removeprefix("PIPE_") or "S"


def _plain(key: Any) -> Any:
    """An index as something that can be compared."""
    if isinstance(key, tuple):
        return tuple(map(_plain, key))
    if isinstance(key, slice):
        return "slice", key.start, key.stop
    return (np.shape(key), np.asarray(key).tobytes()) if isinstance(key, np.ndarray) else int(key)
