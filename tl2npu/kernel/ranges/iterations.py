"""Whether one iteration of a parallel loop reads what another one writes.

All iterations of ``T.Parallel`` run at once: ``a[i, j] = a[i, 63 - j]`` reads what was there before. Statements for whole
tiles, and loops over single elements, would read what they have just written.
"""

from __future__ import annotations

from collections.abc import Sequence

from tl2npu.kernel.model import Operand
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import Sym, var


def may_meet(bounds: Bounds, variables: Sequence[str], read: Operand, written: Operand) -> bool:
    """False if it is proved that an iteration reads what it writes itself, or what none writes.

    ``variables``: those of the loop, with their ranges in ``bounds``.
    """
    if read.buffer is not written.buffer:
        return False
    if read.dims is None or written.dims is None or len(read.dims) != len(written.dims):
        return True
    pairs = [(one.lo, other.lo) for one, other in zip(read.dims, written.dims, strict=True)]
    own = [low for low, other in pairs if low == other]
    if all(any(_is_shifted(low, name, variables) for low in own) for name in variables):
        return False
    others = {name: var(f"{name}'") for name in variables}
    ranges = {**bounds.ranges, **{str(others[name]): bounds.ranges[name] for name in variables}}
    both = Bounds(ranges, bounds.facts, sizes=bounds.sizes)
    return not any(_differ(both, low.substitute(others), other) for low, other in pairs)


def _is_shifted(low: Sym, name: str, variables: Sequence[str]) -> bool:
    """A loop variable with something added that is the same in all iterations."""
    return not any((low - var(name)).depends_on(other) for other in variables)


def _differ(bounds: Bounds, one: Sym, other: Sym) -> bool:
    return bounds.is_not_negative(one - other - 1) or bounds.is_not_negative(other - one - 1)
