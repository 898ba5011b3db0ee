"""Whether one iteration of a parallel loop reads what another one writes.

All iterations of ``T.Parallel`` run at once: ``a[i, j] = a[i, 63 - j]`` reads what was there before. Statements for
whole tiles, and loops over single elements, would read what they have just written.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tl2npu.kernel.model import Operand
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import Sym, var


def may_meet(bounds: Bounds, variables: Sequence[str], inner: Sequence[str], read: Operand, written: Operand) -> bool:
    """False if it is proved that an iteration reads what it writes itself, or what none writes.

    ``variables``: those that tell iterations apart; ``inner``: all that change in the loop, with ranges in ``bounds``.
    """
    if read.buffer is not written.buffer:
        return False
    if read.dims is None or written.dims is None or len(read.dims) != len(written.dims):
        return True
    pairs = [(one.lo, other.lo) for one, other in zip(read.dims, written.dims, strict=True)]
    own = [low for low, other in pairs if low == other]
    if all(any(_tells(low, name, inner) for low in own) for name in variables):
        return False
    others = {name: var(f"{name}'") for name in inner}
    ranges = {**bounds.ranges, **{str(others[name]): bounds.ranges[name] for name in inner}}
    both = Bounds(ranges, bounds.facts, sizes=bounds.sizes)
    return not any(_differ(both, low.substitute(others), other) for low, other in pairs)


def _tells(low: Sym, name: str, variables: Sequence[str]) -> bool:
    """An index that differs where a loop variable does: a multiple of it, and what is the same in all iterations."""
    factor = low.substitute({name: 1}) - low.substitute({name: 0})
    rest = low - factor * var(name)
    return factor.constant not in (None, 0) and not any(rest.depends_on(other) for other in variables)


def _differ(bounds: Bounds, one: Sym, other: Sym) -> bool:
    distance = one - other
    step = gcd(*(factor for monomial, factor in distance.terms if monomial))
    number = next((factor for monomial, factor in distance.terms if not monomial), 0)
    if step and number % step:
        return True  # as the elements with even and with odd numbers
    return bounds.is_not_negative(distance - 1) or bounds.is_not_negative(-distance - 1)
