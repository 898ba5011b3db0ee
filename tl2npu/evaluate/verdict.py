"""Whether two launches left the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import Tile

TOLERANCE = 1e-6
"""Of the magnitude: what other digits of log2(e) and formulas of functions make of ideal floats."""
_ENDLESS = 1e37
"""As good as infinite: formulas of one function overflow in float32 a little before each other."""


@dataclass(frozen=True)
class Parting:
    """``name`` is the tile, ``old`` the statement of the old kernel behind which its value is lost, ``new`` the one of
    the new kernel that stores another; None where the new kernel stores nothing there."""

    name: str
    old: cst.CSTNode
    new: cst.CSTNode | None


@dataclass(frozen=True)
class Outcome:
    """``equal`` is None where the kernels could not be evaluated; ``why`` says what kept them, or where they differ.

    ``unfit``: the factory does not take the sizes; ``is_little``: what was stored tells nothing; ``parting``: the first
    statements with other values, where they were found; ``fails``: the new kernel cannot be run; ``behind``: they
    differ, and the old one reads single elements behind a tensor.
    """

    equal: bool | None
    why: str = ""
    sizes: Mapping[str, object] | None = None
    unfit: bool = False
    is_little: bool = False
    parting: Parting | None = None
    fails: bool = False
    behind: bool = False

    @property
    def shown_sizes(self) -> str:
        """The sizes, as messages show them: ``M=64, N=32``."""
        return ", ".join(f"{name}={value}" for name, value in (self.sizes or {}).items() if type(value) is int)


def verdict(
    old: Mapping[str, Tile], new: Mapping[str, Tile], before: Mapping[str, Any], bound: Mapping[str, object]
) -> Outcome:
    """Whether two launches leave the same in every tensor; ``before`` is what was there.

    What the old one left undefined judges nothing.
    """
    stored = known = 0
    for name, tensor in old.items():
        if name not in new:
            return Outcome(None, f"the new kernel has no tensor `{name}`", bound)
        if not tensor.written and not new[name].written:
            continue
        mine, theirs, start = tensor.data, new[name].data.reshape(tensor.shape), before[name].reshape(tensor.shape)
        changed, defined = mine != start, arithmetic.is_defined(mine)
        stored += int(np.count_nonzero(changed))
        known += int(np.count_nonzero(defined & changed))
        bad = defined & ~is_close(mine, theirs)
        if np.any(bad):
            place = np.unravel_index(int(np.argmax(bad)), tensor.shape)
            at = ", ".join(str(int(item)) for item in place)
            text = f"`{name}[{at}]` would be {_shown(theirs[place])} and was {_shown(mine[place])}"
            return Outcome(False, text, bound)
    if not stored:
        return Outcome(None, "the old kernel stores nothing at this size", bound, is_little=True)
    if known * 2 < stored:
        return Outcome(None, "the old kernel stores what is not defined", bound, is_little=True)
    return Outcome(True, "", bound)


def is_close(left: Any, right: Any) -> Any:
    """For each element whether the right one is what the left one should be.

    What cancels has the digits of its row: of the geometric mean of its numbers, since some are much larger.
    """
    if left.dtype != np.float64:
        return left == right
    with np.errstate(all="ignore"):
        left, right = (np.clip(side, -_ENDLESS, _ENDLESS) for side in (left, right))
        size, gap = np.abs(left), np.abs(left - right)
        found = gap <= TOLERANCE * size
        if found.all() or not left.ndim:
            return found
        counts = (size > 0) & (size < _ENDLESS)
        mean = np.log(size, out=np.zeros_like(size), where=counts).sum(-1) / np.maximum(counts.sum(-1), 1)
        scale = np.where(counts.any(-1), np.exp(mean), 0.0) / 10
        return found | (gap <= TOLERANCE * (size + scale[..., None]))


def _shown(value: Any) -> str:
    number = float(value)
    return f"{number:.6g}" if math.isfinite(number) else "undefined" if math.isnan(number) else str(number)
