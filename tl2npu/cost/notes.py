"""TL951 to TL956: what makes a kernel slow, where the model says that it is a good part of its time.

Limits: 16 KB a transfer, 128 elements a vector instruction (upstream's guide to performance), 0.1 us for the start of
a block (published for grids of 2048 blocks).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.memory_plan.fitting import tile_parameters
from tl2npu.checks.subject import Subject
from tl2npu.cost.estimate import estimate, measured
from tl2npu.cost.rates import RATES, Pipe
from tl2npu.cost.work import Part, Work
from tl2npu.costs import Estimate
from tl2npu.kernel.access import accesses
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.callers import Caller
from tl2npu.kernel.factories.concrete import value_of
from tl2npu.kernel.model import Buffer, Copy, Let, Loop, Memory, Operand, Stmt, walk
from tl2npu.kernel.turns import stages_node
from tl2npu.source.tree import nodes_of

_SIZES = (16, 512)
_AT_ONCE = 3
"""Parameters that are varied together: three have 26 neighbours."""


def faster(
    subject: Subject, caller: Caller, start: Estimate, sizes: Mapping[str, int], cores: int | None = None
) -> list[Estimate]:
    """Sizes that fit and take less time than those of the caller, fastest first; none where the time is not known.

    Every size is doubled and halved from the best ones so far until nothing is faster. What a size has to divide for
    the caller it still divides. ``start``: the estimate for the caller; ``sizes``: what the user gives.
    """
    names = [name for name in tile_parameters(subject, caller) if name not in sizes][:_AT_ONCE]
    needs = Needs.of_subject(subject)
    if start.microseconds is None or start.unknown:
        return []
    tried: dict[tuple[int, ...], Estimate] = {}
    here, best = tuple(caller.values[name] for name in names), start
    while True:
        for there in _neighbours(here):
            chosen = {**sizes, **dict(zip(names, there, strict=True))}
            if there not in tried and _divides(caller, names, there) and _is_allowed(subject, caller, chosen):
                tried[there] = estimate(subject, needs, caller, chosen, cores)
        found = min((key for key in tried if _beats(tried[key], best)), key=lambda key: _time(tried[key]), default=None)
        if found is None:
            break
        here, best = found, tried[found]
    return sorted((one for one in tried.values() if _beats(one, start)), key=_time)


def _neighbours(sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for shifts in itertools.product((-1, 0, 1), repeat=len(sizes)):
        found = tuple(size * 2 if up > 0 else size // 2 if up else size for size, up in zip(sizes, shifts, strict=True))
        if any(shifts) and all(_SIZES[0] <= size <= _SIZES[1] for size in found):
            yield found


def _divides(caller: Caller, names: list[str], sizes: tuple[int, ...]) -> bool:
    """Whether the sizes divide what those of the caller divide, of all other sizes that are as large."""
    others = [value for name, value in caller.values.items() if name not in names and not isinstance(value, bool)]
    return all(
        other % size == 0
        for name, size in zip(names, sizes, strict=True)
        for other in others
        if other >= caller.values[name] and other % caller.values[name] == 0
    )


def _is_allowed(subject: Subject, caller: Caller, chosen: Mapping[str, int]) -> bool:
    """Whether no assertion of the factory is known to fail for these sizes."""
    factory = subject.located.factory
    tests = nodes_of(factory.node.body, cst.Assert) if factory is not None else ()
    known = {**caller.module, **caller.bound, **chosen}
    return all(value_of(item.test, known, caller.names) is not False for item in tests)


def _beats(one: Estimate, other: Estimate) -> bool:
    return one.fits and (not other.fits or _time(one) < _time(other))


def _time(one: Estimate) -> float:
    return one.microseconds or math.inf  # 0: no block is left to do anything


_MUCH = 0.25
"""The part of a block's time from which on something is worth a word."""
_FASTER = 1.2
_CALLS = 4
"""Of a kernel that is called with more sizes than these somebody has tried others already: a tuner."""
_TRANSFER = 16 * 1024
_VECTOR = 128
_START = 0.1
_STARTS = 0.05
_SHORT = 10.0
"""Microseconds: of a shorter kernel the launch by the host, about 50, is all that can be felt."""
_GLOBAL = (Pipe.LOAD_L1, Pipe.LOAD_UB, Pipe.STORE_UB)


@dataclass(frozen=True, eq=False)
class Note:
    """A word about speed, and the node of the kernel that it is about."""

    code: str
    node: cst.CSTNode
    message: str


def notes(
    subject: Subject, caller: Caller, made: Estimate, work: Work, sizes: Mapping[str, int], cores: int | None
) -> Iterator[Note]:
    """What to say of one kernel for one call."""
    if not work.sized or made.microseconds is None or made.microseconds < _SHORT:
        return
    launch = subject.kernel.launched.call
    better = faster(subject, caller, made, sizes, cores) if len(subject.callers) <= _CALLS else []
    best = next((one for one in better if one.microseconds), None)  # with tiles that leave no block there is no time
    if best is not None and best.microseconds:
        times = made.microseconds / best.microseconds
        if times >= _FASTER:
            text = f"{_sizes(made, best)} {times:.1f} times as fast, as estimated{_empty(made, best)}"
            yield Note("TL951", launch, text)
    yield from _waiting(subject, caller, made, sizes, cores)
    yield from _transfers(work, made)
    yield from _short(work, made)
    yield from _starts(made, launch)
    yield from _repeated(subject)


def of_first_call(subject: Subject) -> tuple[Estimate, tuple[Note, ...]] | None:
    """A kernel at the first call of its factory; None for a device of which nothing public is known."""
    if subject.kernel.launch is None or not subject.callers or subject.options.device not in RATES:
        return None
    caller = subject.callers[0]
    made, work = measured(subject, Needs.of_subject(subject), caller, {}, None)
    return made, tuple(notes(subject, caller, made, work, {}, None))


def _sizes(made: Estimate, other: Estimate) -> str:
    """The sizes that differ, as the subject of a sentence."""
    before = dict(made.sizes)
    changed = [f"{name}={value}" for name, value in other.sizes if before.get(name) != value]
    return f"`{', '.join(changed)}` is"


def _empty(made: Estimate, other: Estimate) -> str:
    """For which call that is, and why, where it has fewer blocks than there are cores: larger calls differ."""
    if made.blocks is None or not made.cores or made.blocks >= made.cores:
        return ""
    after = dict(other.sizes)
    same = ", ".join(f"{name}={value}" for name, value in made.sizes if after.get(name) == value)
    blocks = "1 block" if made.blocks == 1 else f"{made.blocks:,} blocks"
    return f" for `{same}`, which makes {blocks} for {made.cores} cores; a larger call may not need it"


def _waiting(
    subject: Subject, caller: Caller, made: Estimate, sizes: Mapping[str, int], cores: int | None
) -> Iterator[Note]:
    """One core waits for the other; a number of stages that the caller sets to one may be why."""
    if not made.waits or not made.waiting or made.waiting < _MUCH * made.expected:
        return
    launch, factory = subject.kernel.launched, subject.located.factory
    for loop in [stmt for stmt in subject.kernel.walk() if isinstance(stmt, Loop) and stmt.kind == "pipelined"]:
        node = stages_node(loop, factory.node if factory is not None else None)
        name = code(node.body) if isinstance(node, cst.IfExp) else ""
        if name in caller.values and caller.values[name] < 2 and name not in sizes:
            other = estimate(subject, Needs.of_subject(subject), caller, {**sizes, name: 2}, cores)
            times = made.expected / other.expected
            if other.fits and times >= _FASTER:
                text = f"with `{name}` = 2 one core works ahead of the other: {times:.1f} times as fast, as estimated"
                yield Note("TL956", loop.node, text)
                return
    text = f"one core waits for the other in {made.waiting / made.expected:.0%} of a block's time"
    yield Note("TL956", launch.call, text)


def _transfers(work: Work, made: Estimate) -> Iterator[Note]:
    small = [p for p in work.parts if isinstance(p.stmt, Copy) and p.pipe in _GLOBAL and p.times > 1]
    small = [part for part in small if 0 < part.size < _TRANSFER]
    worst = _worth_it(small, made)
    if worst is not None:
        text = f"{worst.times:,.0f} transfers of {worst.size:,.0f} bytes each: below 16 KB the start of one counts"
        yield Note("TL952", worst.stmt.node, text)


def _short(work: Work, made: Estimate) -> Iterator[Note]:
    short = [part for part in work.parts if part.pipe is Pipe.VECTOR and 0 < part.elements < _VECTOR]
    worst = _worth_it(short, made)
    if worst is not None:
        alone = worst.elements <= 1
        spent = sum(part.cycles for part in short if not alone or part.elements <= 1) / made.serial
        what = "elements computed one by one" if alone else f"vector instructions on less than {_VECTOR} elements"
        text = f"{spent:.0%} of a block's time passes in {what}"
        if not alone:
            text += f", here {worst.times:,.0f} on {worst.elements:,.0f} each"
        yield Note("TL953", worst.stmt.node, text)


def _starts(made: Estimate, launch: cst.CSTNode) -> Iterator[Note]:
    if made.blocks is None or not made.cores or made.microseconds is None:
        return
    starts = _START * (made.blocks - made.cores)
    if starts > _STARTS * made.microseconds:
        text = f"{made.blocks:,} blocks on {made.cores} cores: their starts take about {starts:,.0f} us"
        yield Note("TL954", launch, f"{text} beside {made.microseconds:,.0f} us of work")


def _repeated(subject: Subject) -> Iterator[Note]:
    """Loads that are the same in every turn of a loop."""
    stored: dict[Buffer, list[Stmt]] = {}
    for placed in subject.statements:
        for access in accesses(placed.stmt):
            if access.writes:
                stored.setdefault(access.operand.buffer, []).append(placed.stmt)
    for placed in subject.statements:
        stmt = placed.stmt
        if not isinstance(stmt, Copy) or stmt.src.buffer.memory is not Memory.GM or not placed.loops:
            continue
        loop = placed.loops[-1]
        fixed = placed.parents[-1] is loop and not _variables(stmt.src, stmt.dst) & _changing(loop)
        fixed = fixed and not (stmt.src.loads or stmt.dst.loads or stmt.options)
        if fixed and loop.kind != "parallel" and stmt.src.buffer not in stored and stored[stmt.dst.buffer] == [stmt]:
            text = f"`{code(stmt.call)}` loads the same in every turn: it can stand before the loop"
            yield Note("TL955", stmt.node, text)


def _variables(*operands: Operand) -> set[str]:
    parts = [part for one in operands for dim in one.dims or () for part in (dim.lo, dim.extent) if part is not None]
    return {name.partition("@")[0] for part in parts for name in part.variables()}


def _changing(loop: Loop) -> set[str]:
    """Names that may be another number in another turn: what the loop counts, and what its body binds."""
    body = list(walk(loop.body))
    ranges = [item for one in (loop, *body) if isinstance(one, Loop) for item in one.ranges]
    return {item.name for item in ranges} | {stmt.name for stmt in body if isinstance(stmt, Let)}


def _worth_it(parts: Sequence[Part], made: Estimate) -> Part | None:
    """The part that takes longest, if all of them together are a good part of a block's time."""
    if not parts or sum(part.cycles for part in parts) < _MUCH * made.serial:
        return None
    return max(parts, key=lambda part: part.cycles)
