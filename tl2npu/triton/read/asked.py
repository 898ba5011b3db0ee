"""What the host is asked to check of sizes, so that the kernel can be read again with what is known then."""

from __future__ import annotations

from collections.abc import Iterator, Set

from tl2npu.kernel.symbolic import Opaque, Sym
from tl2npu.triton.read.spec import Again
from tl2npu.triton.read.state import State


def equate(state: State, one: Sym, other: Sym) -> bool:
    """Note that two sizes must be equal, which the host will check; False if no name is one, or a call shows others."""
    numbers = state.spec.number(one), state.spec.number(other)
    if None not in numbers and numbers[0] != numbers[1]:
        return False
    pairs = ((other, one), (one, other))
    for left, right in sorted(pairs, key=lambda pair: str(pair[0]) in state.spec.values):  # parameters stay
        name = str(left) if left.atom is not None else ""
        fits = name in state.spec.names and name not in right.names and right.names <= state.spec.names
        if fits and all(a == b for a, b in state.spec.relations(left, right, tuned=True)):
            state.spec.equal.append((left, right))
            state.spec.known[name] = right
            return True
    return False


def ask_divides(state: State, index: Sym, extent: Sym, size: Sym) -> None:
    """Where an index ends with its axis if blocks of this size divide the axis, or what a loop counts, or both, have
    the host check that they do."""
    spec, ranges = state.spec, state.ranges
    factors = [
        factor
        for last in (ranges.last[name] for name in index.names & ranges.last.keys())
        for atom in last.atoms()
        if isinstance(atom, Opaque) and atom.head == "cdiv" and atom.args[1] == size
        for factor in _fixed_factors(atom.args[0], ranges.last.keys() | ranges.lets.keys())
    ]
    counted = [(factor, size) for factor in factors]
    for pairs in ([(extent, size)], counted, [*counted, *((extent, factor) for factor in factors)]):
        new = set(pairs) - ranges.divides
        if new and {name.partition("/")[0] for one, _ in new for name in one.names} <= spec.names | spec.values.keys():
            ranges.divides |= new
            fits = ranges.less(index, extent)
            ranges.divides -= new
            if fits:
                spec.divides += sorted(new, key=str)
                raise Again


def _fixed_factors(value: Sym, moving: Set[str]) -> Iterator[Sym]:
    """Of each term, the product of what the launch decides."""
    for mono, coef in value.terms:
        yield Sym.of({tuple(atom for atom in mono if atom.names.isdisjoint(moving)): coef})
