"""Indices that data decides: what tensors of indices, offsets and lengths hold in a program that makes sense."""

from __future__ import annotations

from tl2npu.kernel.ranges.bounds import Bounds
from tl2npu.kernel.symbolic import Atom, Opaque, Sym


def is_load(atom: Atom) -> bool:
    """True for a value that is loaded from a tensor or a tile."""
    return isinstance(atom, Opaque) and atom.head.startswith("load ")


def is_sensible(bounds: Bounds, low: Sym, behind: bool) -> bool:
    """True if the index is right for every content of index tensors that makes sense: what they hold is the number of
    a row or of a page, or the end of a sequence."""
    if all(any(is_load(atom) for atom in monomial) and step > 0 for monomial, step in low.terms):
        return True
    for monomial, step in low.terms:
        load = next((atom for atom in monomial if is_load(atom)), None)
        if load is not None and step > 0:
            left = list(monomial)
            left.remove(load)
            page = Sym.of({tuple(left): step})
            rest = low - page * Sym.of({(load,): 1})
            if bounds.is_not_negative(rest) and bounds.is_not_negative(page - 1 - rest):
                return True
    if not behind:
        return False
    base = Sym.of({m: c for m, c in low.terms if any(is_load(a) for a in m) and c > 0})
    for end in sorted(_ends(bounds), key=str):
        last = Sym.of({(end,): 1}) - 1 - low
        if bounds.is_not_negative(last) or (not base.is_zero and bounds.is_not_negative(base + last)):
            return True
    return False


def _ends(bounds: Bounds) -> set[Atom]:
    """What is loaded for the bound of a loop, or for a condition."""
    sides = [side for pair in bounds.ranges.values() for side in pair]
    return {atom for side in (*sides, *bounds.facts) for atom in side.atoms() if is_load(atom)}
