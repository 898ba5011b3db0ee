"""Whether two kernels give the same values: an old one and what became of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.checks.subject import Subject
from tl2npu.evaluate import inputs, sizes
from tl2npu.evaluate.launch import Launch
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import NotChecked, Tile
from tl2npu.kernel.model import Memory

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
    """Compare what a few blocks of the grid store, and what all do where these differ or store nothing."""
    drawn: dict[str, Any] = {}
    found, label = Outcome(None), "the old kernel"
    try:
        with np.errstate(all="ignore"):
            first = Launch(old, chosen, drawn, attempt)
            label = "the new kernel"
            second = Launch(new, chosen, drawn, attempt)
            every = range(first.count), range(second.count)
            few = _few(first.grid)
            for mine, theirs in ((few, few), every) if first.count == second.count > len(few) else (every,):
                label = "the old kernel"
                before = first.run(mine)
                label = "the new kernel"
                found = _verdict(before, second.run(theirs[::-1]), drawn, chosen)
                if found.equal:
                    return found
            label = "the old kernel"
            if found.equal is False:
                again = first.run(every[0][::-1], watched=True)
                if _verdict(before, again, drawn, chosen).equal is False:
                    raise NotChecked("its blocks store different values in one place")
    except NotChecked as missing:
        return Outcome(None, f"{label}: {missing}", chosen.bound)
    except _FAILS as error:
        return Outcome(None, f"{label}: {type(error).__name__} {error}", chosen.bound)
    return found


def _few(grid: Sequence[int]) -> Sequence[int]:
    """Numbers of some blocks at the ends of a grid, such that any two axes are at each pair of their ends."""
    long = [axis for axis, extent in enumerate(grid) if extent > 1]
    count = math.prod(grid)
    if len(long) < 2:
        return sorted({0, count // 2, count - 1})
    found = []
    for ends in ((0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0)):
        places = {axis: ends[n % 3] * (grid[axis] - 1) for n, axis in enumerate(long)}
        found.append(sum(place * math.prod(grid[:axis]) for axis, place in places.items()))
    return sorted(found)


def _verdict(old: dict[str, Tile], new: dict[str, Tile], before: Mapping[str, Any], chosen: Sizes) -> Outcome:
    stored = known = 0
    for name, tensor in old.items():
        if not tensor.written:
            continue
        if name not in new:
            return Outcome(None, f"the new kernel has no tensor `{name}`", chosen.bound)
        mine, theirs, start = (one.reshape(-1) for one in (tensor.data, new[name].data, before[name]))
        changed = np.flatnonzero((mine != start) | (theirs != start))  # NaN among them
        mine, theirs, start = mine[changed], theirs[changed], start[changed]
        defined = mine == mine
        stored += int(np.count_nonzero(mine != start))
        known += int(np.count_nonzero(defined & (mine != start)))
        bad = defined & ~_close(mine, theirs)
        if np.any(bad):
            first = int(np.argmax(bad))
            place = np.unravel_index(int(changed[first]), tensor.shape)
            at = ", ".join(str(int(item)) for item in place)
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
