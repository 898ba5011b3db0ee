"""Reads of elements that another iteration of the same ``T.Parallel`` writes.

All iterations run at once: ``a[i, j] = a[i, 63 - j]`` reads what was there before. Statements for whole tiles, and loops
over single elements, would read what they have just written; such a value is computed beside its tile.
"""

from __future__ import annotations

from tl2npu.kernel.model import Operand
from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import Sym, var
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.gpu.elementwise.reading import Reading
from tl2npu.passes.gpu.elementwise.tree import Expr


def reads_others(reading: Reading, value: Expr, target: Expr) -> bool:
    """Whether a value may read an element of its destination that another iteration writes."""
    assert target.load is not None
    reads = [part.load for part in value.loads if part.load is not None]
    reads += [inner for load in reads for inner in load.loads]
    return any(
        load.buffer is target.load.buffer and not _is_own_or_apart(reading, load, target.load) for load in reads
    )


def _is_own_or_apart(reading: Reading, read: Operand, written: Operand) -> bool:
    """Proved: an iteration reads what it writes itself, or what none writes."""
    if read.dims is None or written.dims is None or len(read.dims) != len(written.dims):
        return False
    pairs = [(one.lo, other.lo) for one, other in zip(read.dims, written.dims, strict=True)]
    variables = _variables(reading.nest)
    own = [low for low, other in pairs if low == other]
    if all(any(_is_shifted(low, name, variables) for low in own) for name in variables):
        return True
    others = {name: var(f"{name}'") for name in variables}
    known = reading.bounds
    ranges = {**known.ranges, **{str(others[name]): known.ranges[name] for name in variables}}
    bounds = Bounds(ranges, known.facts, sizes=known.sizes)
    return any(_differ(bounds, low.substitute(others), other) for low, other in pairs)


def _is_shifted(low: Sym, name: str, variables: list[str]) -> bool:
    """A loop variable with something added that is the same in all iterations."""
    return not any((low - var(name)).depends_on(other) for other in variables)


def _differ(bounds: Bounds, one: Sym, other: Sym) -> bool:
    return bounds.is_not_negative(one - other - 1) or bounds.is_not_negative(other - one - 1)


def _variables(nest: Nest) -> list[str]:
    return [axis.var for axis in (nest.rows, nest.columns) if axis is not None]
