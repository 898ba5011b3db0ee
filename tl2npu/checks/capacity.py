"""What a kernel needs of the on-chip memories.

The compiler gives no error text: with memory planning it crashes, without it the addresses run over. So the planner is
repeated here (``src/transform/ascend_memory_planning.cc``: intervals from first to last use, new memory first, then
reuse), and the operand slots of ``gemm_v0`` are computed. What the compiler adds itself (temporaries of reductions and
of long expressions) is not counted. Evidence: facts 4 (g8_l0a, l0a2) and 8.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.checks.channels import is_on_chip
from tl2npu.checks.gemm import depth_of
from tl2npu.checks.split import split_of
from tl2npu.checks.subject import Placed, Subject
from tl2npu.devices import DEFAULT_DEVICE, DEVICES
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import accesses
from tl2npu.kernel.callers import Caller, Values
from tl2npu.kernel.configs import PLANNING
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Branch, Buffer, Copy, Loop, Memory, Op, Operand, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE

_ALIGN = 32
_K_STEP = 128
_CONDITIONS = 4


@dataclass(frozen=True)
class Interval:
    """Where a buffer of ``size`` bytes is alive, in statement numbers, both ends included."""

    name: str
    start: int
    end: int
    size: int


@dataclass(frozen=True)
class Overflow:
    """A memory that holds ``limit`` bytes where ``need`` are wanted, ``size`` of them by one buffer."""

    memory: str
    limit: int
    need: int
    buffer: str
    size: int
    node: cst.CSTNode

    def __str__(self) -> str:
        if self.need == self.size:
            return f"{self.memory} holds {self.limit} bytes, `{self.buffer}` needs {self.need}"
        return f"{self.memory} holds {self.limit} bytes, the kernel needs {self.need} (`{self.buffer}`: {self.size})"


class Needs:
    """What a kernel needs of each memory, for given sizes."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.capacity = DEVICES.get(subject.options.device, DEFAULT_DEVICE).capacity
        self._spans = [_spans(subject, without) for without in _choices(subject)]
        by_hand = any(isinstance(p.stmt, Op) and p.stmt.op.name == "annotate_address" for p in subject.statements)
        # buffers that share addresses on purpose need less than the sum of them
        self._memories = () if by_hand else (Memory.L1, Memory.UB, Memory.L0C)
        self._halved = split_of(subject).halved if subject.is_split else set()
        self._planned: dict[tuple[Memory, tuple[int | None, ...]], tuple[int, Interval | None]] = {}
        self._of_callers: dict[int, tuple[Caller, list[Overflow]]] = {}

    def of(self, caller: Caller) -> list[Overflow]:
        """Every memory that the sizes and types of a caller overflow; worked out once for each."""
        if id(caller) not in self._of_callers:
            self._of_callers[id(caller)] = caller, list(self.overflows(caller.values, caller.words))
        return self._of_callers[id(caller)][1]

    def overflows(self, known: Values, words: Mapping[str, str]) -> Iterator[Overflow]:
        """Every memory that these sizes and types overflow."""
        launch = self.subject.kernel.launch
        assert launch is not None
        for memory in self._memories:
            limit = self.capacity.of(memory.value.lower())
            if limit is None:
                continue
            need, biggest = self._most(memory, limit, self._sizes(memory, known, words))
            if need > limit:
                assert biggest is not None
                yield Overflow(memory.value, limit, need, biggest.name, biggest.size, launch.call)
        for placed in self.subject.statements:
            if isinstance(placed.stmt, Op) and placed.stmt.op.kind is Kind.GEMM:
                yield from self._operands(placed.stmt, known, words)

    def _sizes(self, memory: Memory, known: Values, words: Mapping[str, str]) -> tuple[int | None, ...]:
        """The bytes of every buffer in a memory; None where they are not known."""
        halved = self._halved if memory is Memory.UB else set()
        found: list[int | None] = []
        for buffer in self.subject.allocated(memory):
            size = _item_size(buffer, words)
            extents = [extent.evaluate(known) for extent in buffer.shape] if size is not None else []
            sizes = [extent for extent in extents if extent is not None]
            if size is None or len(sizes) != len(extents) or not sizes:
                found.append(None)
                continue
            if buffer in halved:
                sizes[0] = max(1, sizes[0] // 2)
            found.append(-(-math.prod(sizes) * size // _ALIGN) * _ALIGN)
        return tuple(found)

    def _most(self, memory: Memory, limit: int, sizes: tuple[int | None, ...]) -> tuple[int, Interval | None]:
        """The most that is needed for any outcome of the conditions, with the biggest buffer of that.

        Callers that differ in other things than these sizes, as many of an autotuner's do, need the same.
        """
        key = memory, sizes
        if key not in self._planned:
            planned = self.subject.is_on(PLANNING) is not False
            buffers = list(self.subject.allocated(memory))
            choices = [
                [
                    Interval(buffer.name, *spans[buffer], size)
                    for buffer, size in zip(buffers, sizes, strict=True)
                    if size is not None and buffer in spans
                ]
                for spans in self._spans
            ]
            need, found = max(((_need(c, limit, planned), c) for c in choices), key=lambda pair: pair[0])
            self._planned[key] = need, max(found, key=lambda interval: interval.size, default=None)
        return self._planned[key]

    def _operands(self, stmt: Op, known: Values, words: Mapping[str, str]) -> Iterator[Overflow]:
        """L0A and L0B: the whole operand, or two slots of 128 (``kL0Size``) in K where K is longer."""
        depth = depth_of(stmt)
        for name, memory in (("A", "l0a"), ("B", "l0b")):
            operand = stmt.args.get(name)
            limit = self.capacity.of(memory)
            if not isinstance(operand, Operand) or depth is None or limit is None or len(operand.buffer.shape) < 2:
                continue
            size = _item_size(operand.buffer, words)
            count = operand.buffer.shape[-2] * operand.buffer.shape[-1]
            total, deep = count.evaluate(known), depth.evaluate(known)
            if size is None or total is None or not deep:
                continue
            need = total * size
            step = _step(stmt, known)
            if deep > step:
                if self.subject.target == "pto":
                    continue
                need = 2 * (total // deep) * step * size
            if need > limit:
                yield Overflow(memory.upper(), limit, need, operand.buffer.name, need, stmt.node)
                return


def _step(stmt: Op, known: Values) -> int:
    given = stmt.args.get("kL0Size")
    return (given.sym.evaluate(known) if isinstance(given, Scalar) else None) or _K_STEP


def _item_size(buffer: Buffer, words: Mapping[str, str]) -> int | None:
    return ITEM_SIZE.get(words.get(buffer.dtype, buffer.dtype))


_Arm = tuple[Branch, bool]


def _choices(subject: Subject) -> list[frozenset[_Arm]]:
    """The arms that are not there, for each outcome of the conditions that Python decides."""
    tests: dict[str, list[Branch]] = {}
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Branch) or not isinstance(stmt.node, cst.If):
            continue
        if subject.late.python_decides(stmt):
            tests.setdefault(code(stmt.node.test), []).append(stmt)
    if len(tests) > _CONDITIONS:
        return [frozenset()]
    outcomes = itertools.product((True, False), repeat=len(tests))
    return [
        frozenset((branch, not holds) for holds, same in zip(outcome, tests.values(), strict=True) for branch in same)
        for outcome in outcomes
    ]


def _spans(subject: Subject, without: frozenset[_Arm] = frozenset()) -> dict[Buffer, tuple[int, int]]:
    """First and last use; a last use in a loop that the first use is not in lasts until the end of that loop.

    ``without``: arms of conditions that are not there.
    """
    first: dict[Buffer, Placed] = {}
    last: dict[Buffer, Placed] = {}
    ends: dict[Loop, int] = {}
    for placed in subject.statements:
        for loop in placed.loops:
            ends[loop] = placed.order
        stmt = placed.stmt
        if isinstance(stmt, Alloc) or not without.isdisjoint(placed.conditions):
            continue
        for access in accesses(stmt):
            if isinstance(stmt, Copy) and is_on_chip(stmt) and access.operand is stmt.dst:
                continue  # the tile is stored to a workspace here; it arrives before its first reader
            first.setdefault(access.operand.buffer, placed)
            last[access.operand.buffer] = placed
    result: dict[Buffer, tuple[int, int]] = {}
    for buffer, begin in first.items():
        end = last[buffer]
        outside = next((loop for loop in end.loops if loop not in begin.loops), None)
        result[buffer] = (begin.order, ends[outside] if outside is not None else end.order)
    return result


def _need(intervals: Sequence[Interval], limit: int, planned: bool) -> int:
    """Bytes that the intervals take; with planning at most ``limit`` if the planner finds a place for all of them."""
    if not planned:
        return sum(interval.size for interval in intervals)
    return plan(intervals, limit)


def plan(intervals: Sequence[Interval], limit: int) -> int:
    """The highest address that the planner would reach; above ``limit`` if it finds no place for an interval."""
    top = 0
    free: list[tuple[int, int]] = []
    alive: list[tuple[Interval, int]] = []
    for interval in sorted(intervals, key=lambda item: item.start):
        for old, offset in [pair for pair in alive if pair[0].end < interval.start]:
            alive.remove((old, offset))
            free.append((offset, old.size))
        free = _merged(free)
        if top + interval.size <= limit:
            alive.append((interval, top))
            top += interval.size
            continue
        block = next((item for item in free if item[1] >= interval.size), None)
        if block is None:
            if not free or sum(free[-1]) != top or limit - free[-1][0] < interval.size:
                return max(limit + 1, sum(item.size for item, _ in alive) + interval.size)
            block = (free[-1][0], limit - free[-1][0])  # the last block grows into what is left at the end
            free[-1] = block
            top = limit
        free.remove(block)
        if block[1] > interval.size:
            free.append((block[0] + interval.size, block[1] - interval.size))
        alive.append((interval, block[0]))
    return top


def _merged(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for offset, size in sorted(blocks):
        if result and sum(result[-1]) >= offset:
            result[-1] = (result[-1][0], max(sum(result[-1]), offset + size) - result[-1][0])
        else:
            result.append((offset, size))
    return result
