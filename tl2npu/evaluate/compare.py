"""Whether two kernels give the same values: an old one and what became of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.checks.row_split.split import split_of
from tl2npu.checks.subject import Subject
from tl2npu.evaluate import host, inputs, sizes
from tl2npu.evaluate.cores import Layout
from tl2npu.evaluate.machine import Machine
from tl2npu.evaluate.races import Watch
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import NotChecked, Tile
from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.model import Loop, Memory

WORK = 6_000_000
"""Elements that one evaluation may take, a statement counting as 200."""
TOLERANCE = 1e-6
"""Of the magnitude: what other digits of log2(e) and formulas of functions make of ideal floats."""
_FAILS = (ArithmeticError, ValueError, TypeError, IndexError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Outcome:
    """``equal`` is None where the kernels could not be evaluated; ``why`` says what kept them, or where they differ."""

    equal: bool | None
    why: str = ""
    sizes: Mapping[str, object] | None = None

    @property
    def shown_sizes(self) -> str:
        """The sizes, as messages show them: ``M=64, N=32``."""
        return ", ".join(f"{name}={value}" for name, value in (self.sizes or {}).items() if type(value) is int)


def compared(old: Subject, new: Subject) -> Outcome:
    """Evaluate both on the same values, drawn at random, and compare every tensor.

    A difference at sizes that no call gives counts if there is one at those of a call, or no call gives any. Switches
    that a Python ``if`` of the kernel asks for have their other value in a second run.
    """
    first, *given = sizes.choose(old.file, old.located, old.kernel)
    outcome = _drawn(old, new, first)
    if outcome.equal is None:
        larger, *_ = sizes.choose(old.file, old.located, old.kernel, larger=True)
        outcome = _drawn(old, new, larger) if larger != first else outcome
    unfit = outcome.equal is None and outcome.why.endswith("at these sizes")
    for called in given if unfit or outcome.equal is False else ():
        outcome = _drawn(old, new, called)
        if outcome.equal is None and not unfit:
            return Outcome(None, f"they differ at small sizes, and at those of a call {outcome.why}")
    switched = sizes.switched(old.kernel, first)
    if outcome.equal and switched is not None:
        other = _drawn(old, new, switched)
        return other if other.equal is False else outcome
    return outcome


def _drawn(old: Subject, new: Subject, chosen: Sizes) -> Outcome:
    """Compare at some sizes; values of integers that the old kernel cannot take are drawn again."""
    outcome = Outcome(None)
    has_integers = any(b.memory is Memory.GM and b.dtype.startswith(("i", "T.int")) for b in old.kernel.params)
    for attempt in inputs.ATTEMPTS if has_integers else inputs.ATTEMPTS[:1]:
        outcome = _at(old, new, chosen, attempt)
        if outcome.equal is not None or not outcome.why.startswith("the old kernel"):
            break
    return outcome


def _at(old: Subject, new: Subject, chosen: Sizes, attempt: int) -> Outcome:
    drawn: dict[str, Any] = {}
    label = "the old kernel"
    try:
        with np.errstate(all="ignore"):
            before = _evaluated(old, chosen, drawn, attempt)
            label = "the new kernel"
            found = _verdict(before, _evaluated(new, chosen, drawn, attempt, backwards=True), drawn, chosen)
            label = "the old kernel"
            if found.equal is False:
                again = _evaluated(old, chosen, drawn, attempt, backwards=True, watched=True)
                if _verdict(before, again, drawn, chosen).equal is False:
                    raise NotChecked("its blocks store different values in one place")
    except NotChecked as missing:
        return Outcome(None, f"{label}: {missing}", chosen.bound)
    except _FAILS as error:
        return Outcome(None, f"{label}: {type(error).__name__} {error}", chosen.bound)
    return found


def _evaluated(
    subject: Subject,
    chosen: Sizes,
    drawn: dict[str, Any],
    attempt: int,
    backwards: bool = False,
    watched: bool = False,
) -> dict[str, Tile]:
    """The tensors behind a launch, its last block first if ``backwards``; the first call draws what all start with.

    ``watched``: raises :class:`NotChecked` where lanes of a loop race.
    """
    around = host.surroundings(subject.file, subject.located, chosen.bound, chosen.symbols)
    dialect = subject.kernel.dialect
    machine = Machine(subject.file.names, dialect, _layout(subject, chosen))
    machine.frame, machine.symbols, machine.left = around, dict(chosen.symbols), WORK
    tensors, scalars = host.tensors(machine, subject.kernel.node)
    if not drawn:
        values = inputs.draw(tensors, scalars, inputs.range_of(subject.kernel, tensors), attempt)
        drawn |= {**{name: tensor.data.copy() for name, tensor in tensors.items()}, **values}
    for name, tensor in tensors.items():
        if name in drawn and drawn[name].size == tensor.data.size:
            tensor.data = drawn[name].reshape(tensor.shape).copy()
        elif name in drawn:
            raise NotChecked(f"`{name}` has another size than before")
    params: dict[str, object] = {**{name: drawn[name] for name in scalars if name in drawn}, **tensors}
    machine.watch = Watch() if watched else None
    machine.run(body_of(subject.kernel.node), around, params, backwards)
    return tensors


def _layout(subject: Subject, chosen: Sizes) -> Layout:
    kernel = subject.kernel
    on_chip = [buffer for buffer in kernel.buffers.values() if buffer.memory is not Memory.GM]
    memories = {id(buffer.node): buffer.memory for buffer in on_chip}
    if kernel.dialect == "gpu":
        return Layout(memories)
    if not subject.is_split or any(_is_odd(size.evaluate(_integers(chosen))) for size in subject.even):
        return Layout(memories)
    split = split_of(subject)
    loops = {
        (id(stmt.node), place)
        for stmt in kernel.walk()
        if isinstance(stmt, Loop)
        for place, item in enumerate(stmt.ranges)
        if item in split.rows
    }
    halved, gathered = (frozenset(id(b.node) for b in some) for some in (split.halved, split.gathered))
    return Layout(memories, halved, gathered, frozenset(loops), 2)


def _integers(chosen: Sizes) -> dict[str, int]:
    return {name: value for name, value in chosen.bound.items() if isinstance(value, int)}


def _is_odd(number: int | None) -> bool:
    return number is not None and number % 2 == 1


def _verdict(old: dict[str, Tile], new: dict[str, Tile], before: Mapping[str, Any], chosen: Sizes) -> Outcome:
    stored = known = 0
    for name, tensor in old.items():
        if not tensor.written:
            continue
        if name not in new:
            return Outcome(None, f"the new kernel has no tensor `{name}`", chosen.bound)
        mine, theirs = tensor.data.reshape(-1), new[name].data.reshape(-1)
        defined = mine == mine
        stored += int(np.count_nonzero((mine != before[name].reshape(-1)) | ~defined))
        known += int(np.count_nonzero(defined & (mine != before[name].reshape(-1))))
        bad = defined & ~_close(mine, theirs)
        if np.any(bad):
            place = np.unravel_index(int(np.argmax(bad)), tensor.shape)
            at = ", ".join(str(int(item)) for item in place)
            first = int(np.argmax(bad))
            text = f"`{name}[{at}]` would be {_shown(theirs[first])} and was {_shown(mine[first])}"
            return Outcome(False, text, chosen.bound)
    if not stored:
        return Outcome(None, "the old kernel stores nothing at this size", chosen.bound)
    if known * 2 < stored:
        return Outcome(None, "the old kernel stores what is not defined", chosen.bound)
    return Outcome(True, "", chosen.bound)


def _close(left: Any, right: Any) -> Any:
    if left.dtype != np.float64:
        return left == right
    finite = left[np.isfinite(left) & (left != 0)]
    scale = float(np.median(np.abs(finite))) if finite.size else 0.0
    with np.errstate(all="ignore"):
        near = np.abs(left - right) <= TOLERANCE * (np.abs(left) + scale / 10)
    return (near & np.isfinite(left)) | (left == right)


def _shown(value: Any) -> str:
    number = float(value)
    return f"{number:.6g}" if math.isfinite(number) else "undefined" if math.isnan(number) else str(number)
