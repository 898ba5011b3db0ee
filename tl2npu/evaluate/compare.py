"""Whether two kernels give the same values: an old one and what became of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.checks.subject import Subject
from tl2npu.evaluate import fitting, inputs, sizes
from tl2npu.evaluate.host import Unfit
from tl2npu.evaluate.launch import Launch
from tl2npu.evaluate.sizes import Sizes
from tl2npu.evaluate.values import NotChecked, Tile
from tl2npu.kernel.model import Memory

_SOME = 16
"""Of many blocks, where a few store nothing."""
TOLERANCE = 1e-6
"""Of the magnitude: what other digits of log2(e) and formulas of functions make of ideal floats."""
_FAILS = (ArithmeticError, ValueError, TypeError, IndexError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Outcome:
    """``equal`` is None where the kernels could not be evaluated; ``why`` says what kept them, or where they differ.

    ``unfit``: the factory does not take the sizes.
    """

    equal: bool | None
    why: str = ""
    sizes: Mapping[str, object] | None = None
    unfit: bool = False

    @property
    def shown_sizes(self) -> str:
        """The sizes, as messages show them: ``M=64, N=32``."""
        return ", ".join(f"{name}={value}" for name, value in (self.sizes or {}).items() if type(value) is int)


def compared(old: Subject, new: Subject) -> Outcome:
    """Evaluate both on the same values, drawn at random, and compare every tensor.

    A difference at sizes that no call gives counts if there is one at those of a call, or no call gives any. Switches
    that a Python ``if`` of the kernel asks for have their other value in a second run.
    """
    *small, called = sizes.choose(old.file, old.located, old.kernel)
    outcome = Outcome(None)
    for chosen in small:
        outcome = _drawn(old, new, chosen)
        if outcome.equal:
            break
    if outcome.unfit and (fitted := fitting.fitted(old.file, old.located, small[0])) is not None:
        chosen = fitted
        outcome = _drawn(old, new, chosen)
    if outcome.equal is None:
        larger = sizes.choose(old.file, old.located, old.kernel, larger=True)[-2]
        outcome = _drawn(old, new, larger) if larger not in small else outcome
    if called is not None and (outcome.unfit or outcome.equal is False):
        differs = outcome.equal is False
        outcome = _drawn(old, new, called)
        if outcome.equal is None and differs:
            return Outcome(None, f"they differ at small sizes, and at those of a call {outcome.why}")
    switched = sizes.switched(old.kernel, chosen)
    if outcome.equal is not False and switched is not None:
        other = _drawn(old, new, switched)
        return other if other.equal is False or outcome.equal is None else outcome
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
            for some in _few(first.grid) if first.count == second.count else ():
                label = "the old kernel"
                before = first.run(some)
                label = "the new kernel"
                found = _verdict(before, second.run(some[::-1]), drawn, chosen)
                if found.equal:
                    return found
            label = "the old kernel"
            before = first.run(every[0])
            label = "the new kernel"
            found = _verdict(before, second.run(every[1][::-1]), drawn, chosen)
            label = "the old kernel"
            if found.equal is False:
                again = first.run(every[0][::-1], watched=True)
                if _verdict(before, again, drawn, chosen).equal is False:
                    raise NotChecked("its blocks store different values in one place")
    except NotChecked as missing:
        return Outcome(None, f"{label}: {missing}", chosen.bound, isinstance(missing, Unfit))
    except _FAILS as error:
        return Outcome(None, f"{label}: {type(error).__name__} {error}", chosen.bound)
    return found


def _few(grid: Sequence[int]) -> Iterator[Sequence[int]]:
    """Numbers of some blocks at the ends of a grid, such that any two axes are at each pair of their ends; then of some
    all over the grid."""
    long = [axis for axis, extent in enumerate(grid) if extent > 1]
    count = math.prod(grid)
    found = [0, count // 2, count - 1]
    if len(long) > 1:
        last = [(grid[axis] - 1) * math.prod(grid[:axis]) for axis in long]
        corners = ((0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0))
        found = [sum(step * ends[n % 3] for n, step in enumerate(last)) for ends in corners]
    for some in (sorted(set(found)), range(count - 1, -1, -(count // _SOME or 1))[::-1]):
        if len(some) < count:
            yield some


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
