"""Inequalities between symbolic integers: what is certainly not negative, given ranges of variables and conditions.

A proof replaces one part of the expression after the other by a bound of it, until a number is left: a loop variable by
an end of its range, ``d * (n // d)`` by ``n`` or ``n - d + 1``, a ``min`` by one of its arguments. Where no order of
these steps ends in a number that is not negative, nothing is known. Names that have their value from outside of the
kernel are sizes, which are at least 1, and so is what the kernel divides by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tl2npu.kernel.symbolic import Atom, Div, Mod, Monomial, Opaque, Sym, Var, const

EITHER = "either"
"""Head of an opaque expression that has the value of its first argument where the third is true, else the second's."""

_STEPS = 120
_DEPTH = 12


def is_size(name: str) -> bool:
    """True for a name that has its value outside of the kernel: no block index, loop variable or name of the body."""
    return "@" not in name or "." in name.split("@")[1]


Ranges = Mapping[str, tuple[Sym, Sym]]


@dataclass(eq=False)
class Bounds:
    """``ranges``: first and last value of variables; ``facts``: expressions that are at least 0; ``values``: names
    that stand for something else. ``sizes``: the names that are at least 1; by default all that come from outside of
    the kernel, and what is loaded from a tensor is then taken not to be negative."""

    ranges: Ranges
    facts: tuple[Sym, ...] = ()
    values: Mapping[str, Sym] = field(default_factory=dict)
    sizes: frozenset[str] | None = None
    _expanded: dict[Sym, Sym] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.ranges = {name: (self.expanded(a), self.expanded(b)) for name, (a, b) in self.ranges.items()}
        search = _Search(self.ranges, (), self.sizes)
        self.facts = tuple(part for fact in self.facts for part in search.simpler(self.expanded(fact), 4))

    def is_not_negative(self, sym: Sym) -> bool:
        """Proved to be at least 0."""
        return _is_not_negative(tuple(self.ranges.items()), self.facts, self.expanded(sym), self.sizes)

    def divided(self, size: str, tile: Sym) -> Bounds:
        """The same, with a size that is a multiple of a tile: of a name for how often that fits."""
        whole = tile * Sym.of({(Var(f"{size} // {tile}"),): 1})

        def of(sym: Sym) -> Sym:
            return sym.map_variables({size: whole}.get)

        values = {name: of(value) for name, value in self.values.items()}
        ranges = {name: (of(first), of(last)) for name, (first, last) in self.ranges.items()}
        return Bounds(ranges, tuple(map(of, self.facts)), {**values, size: whole}, self.sizes)

    def expanded(self, sym: Sym) -> Sym:
        """Names replaced by what they stand for."""
        found = self._expanded.get(sym)
        if found is None:
            self._expanded[sym] = found = sym  # a name that stands for itself ends here
            if any(name in self.values for name in sym.names):
                found = self._expanded[sym] = sym.map_variables(
                    lambda name: self.expanded(self.values[name]) if name in self.values else None
                )
        return found


@lru_cache(maxsize=4096)
def _is_not_negative(
    ranges: tuple[tuple[str, tuple[Sym, Sym]], ...], facts: tuple[Sym, ...], sym: Sym, sizes: frozenset[str] | None
) -> bool:
    """Remembered for all kernels: each is read and checked many times, in several forms."""
    search = _Search(dict(ranges), facts, sizes)
    sides = [sym, *(side for _, pair in ranges for side in pair)]
    search.divisors = {den for den in map(_divisor, (a for s in sides for a in s.atoms())) if den is not None}
    search.divisors |= {atom for fact in facts for atom in _single(fact + 1)}
    return search.proved(sym, _DEPTH)


class _Search:
    """One proof. ``divisors``: what is divided by, and so at least 1, or known to be."""

    def __init__(self, ranges: Ranges, facts: tuple[Sym, ...], sizes: frozenset[str] | None) -> None:
        self.ranges = ranges
        self.facts = facts
        self.sizes = sizes
        self.divisors: set[Atom] = set()
        self._left = _STEPS
        self._seen: dict[Sym, int] = {}
        self._known: dict[Atom, int | None] = {}

    def simpler(self, fact: Sym, depth: int) -> Iterator[Sym]:
        """What a fact says without ``min`` and ``max``, as far as it can be told which argument counts."""
        for atom in sorted({a for monomial, _ in fact.terms for a in monomial if isinstance(a, Opaque)}, key=str):
            split = _linear(fact, atom) if atom.head in ("min", "max", EITHER) and depth else None
            sign = split[0].constant if split is not None else None
            if split is None or sign is None:
                continue
            every = [split[1] + split[0] * arg for arg in atom.args[: 2 if atom.head == EITHER else None]]
            if atom.head == EITHER or (atom.head == "max") == (sign > 0):
                # one of them holds: the one that is not known to be negative
                every = [one for one in every if not self._termwise(-one - 1)]
                if len(every) != 1:
                    continue
            for one in every:
                yield from self.simpler(one, depth - 1)
            return
        yield fact

    def proved(self, sym: Sym, depth: int) -> bool:
        """At least 0, by at most so many steps one behind the other."""
        value = sym.constant
        if value is not None:
            return value >= 0
        if self._termwise(sym):
            return True
        if depth == 0 or self._left <= 0 or self._seen.get(sym, -1) >= depth:
            return False
        self._left -= 1
        self._seen[sym] = depth
        return any(all(self.proved(part, depth - 1) for part in parts) for parts in self._weaker(sym))

    def _termwise(self, sym: Sym) -> bool:
        """Every term has a least value and these are not negative in sum."""
        total = 0
        for monomial, coef in sym.terms:
            if coef < 0 and monomial:
                return False
            least = 1
            for atom in monomial:
                one = self._least(atom)
                if one is None:
                    return False
                least *= one
            total += coef * least
        return total >= 0

    def _least(self, atom: Atom) -> int | None:
        """A number that the atom is not below, itself not negative; None if there is none."""
        if atom not in self._known:
            self._known[atom] = self._least_of(atom)
        return self._known[atom]

    def _least_of(self, atom: Atom) -> int | None:
        if atom in self.divisors:
            return 1
        if isinstance(atom, Var):
            if atom.name in self.ranges:
                low = self.ranges[atom.name][0]
                return low.constant if low.constant is not None and low.constant >= 0 else self._zero(low)
            return 1 if self._is_size(atom.name) else None
        if isinstance(atom, Mod):
            return 0 if self._positive(atom.den) else None
        if isinstance(atom, Div):
            return 0 if self._termwise(atom.num) and self._positive(atom.den) else None
        if atom.head in ("min", "max", EITHER):
            found = [self._zero(arg) for arg in atom.args[: 2 if atom.head == EITHER else None]]
            if atom.head == "max":
                return 0 if any(one is not None for one in found) else None
            return 0 if all(one is not None for one in found) else None
        return 0 if self._is_counting_load(atom) else None

    def _is_size(self, name: str) -> bool:
        return is_size(name) if self.sizes is None else name in self.sizes

    def _is_counting_load(self, atom: Opaque) -> bool:
        return self.sizes is None and atom.head.startswith("load ")

    def _zero(self, sym: Sym) -> int | None:
        return 0 if self._termwise(sym) else None

    def _positive(self, sym: Sym) -> bool:
        """What is divided by is a size, or known to be at least 1."""
        value = sym.constant
        if value is not None:
            return value > 0
        return all(is_size(name) for name in sym.names) or self._termwise(sym - 1)

    # one step ----------------------------------------------------------------------------------------------------

    def _weaker(self, sym: Sym) -> Iterator[tuple[Sym, ...]]:
        """Expressions that are at most ``sym``: if all of one tuple are not negative, ``sym`` is not."""
        for fact in self.facts:
            if not fact.names.isdisjoint(sym.names) and len((sym - fact).terms) <= len(sym.terms):
                yield (sym - fact,)
        for atom in _in_order(sym):
            split = _linear(sym, atom)
            if split is None:
                continue
            factor, rest = split
            if isinstance(atom, Div):
                yield from self._whole(atom, factor, rest)
                yield from self._apart(atom, factor, rest)
            sign = 1 if self._termwise(factor) else -1 if self._termwise(-factor) else 0
            if sign:
                yield from self._bounded(atom, factor, rest, sign)

    def _bounded(self, atom: Atom, factor: Sym, rest: Sym, sign: int) -> Iterator[tuple[Sym, ...]]:
        if isinstance(atom, Var):
            if atom.name in self.ranges:
                if rest.depends_on(atom.name):
                    return  # inside of another atom: that one first
                yield (rest + factor * self.ranges[atom.name][0 if sign > 0 else 1],)
            elif sign > 0 and self._is_size(atom.name) and not rest.depends_on(atom.name):
                yield (rest + factor,)
        elif isinstance(atom, Div):
            yield from self._of_quotient(atom, factor, rest, sign)
        elif isinstance(atom, Mod):
            if self._positive(atom.den):
                yield (rest + factor * (const(0) if sign > 0 else atom.den - 1),)
                if sign < 0 and self._termwise(atom.num):
                    yield (rest + factor * atom.num,)
        elif atom.head in ("min", "max", EITHER):
            every = tuple(rest + factor * arg for arg in atom.args[: 2 if atom.head == EITHER else None])
            if atom.head == EITHER or (atom.head == "min") == (sign > 0):
                yield every
            else:
                yield from ((one,) for one in every)
        elif sign > 0 and self._is_counting_load(atom):
            yield (rest,)

    def _whole(self, atom: Div, factor: Sym, rest: Sym) -> Iterator[tuple[Sym, ...]]:
        """``den * (num // den)`` is at most ``num`` and at least ``num - den + 1``."""
        num, den = atom.num, atom.den
        if not self._positive(den):
            return
        times, left = factor // den, const(0)
        if times * den != factor:
            if len(den.terms) != 1:
                return
            # the terms of the factor that the divisor divides
            parts = [(Sym.of({monomial: coef}), Sym.of({monomial: coef}) // den) for monomial, coef in factor.terms]
            times = sum((quotient for part, quotient in parts if quotient * den == part), const(0))
            left = factor - times * den
        if times.is_zero:
            return
        beside = rest + left * Sym.of({(atom,): 1})
        if self._termwise(-times):
            yield (beside + times * num,)
        elif self._termwise(times):
            yield (beside + times * (num - den + 1),)

    def _apart(self, atom: Div, factor: Sym, rest: Sym) -> Iterator[tuple[Sym, ...]]:
        """``a // den - b // den`` is at least ``(a - b) // den``."""
        for other in _in_order(rest):
            split = _linear(rest, other) if isinstance(other, Div) and other.den == atom.den else None
            if split is not None and split[0] == -factor and self._positive(atom.den) and self._termwise(factor):
                assert isinstance(other, Div)
                yield (split[1] + factor * ((atom.num - other.num) // atom.den),)

    def _of_quotient(self, atom: Div, factor: Sym, rest: Sym, sign: int) -> Iterator[tuple[Sym, ...]]:
        num, den = atom.num, atom.den
        if not self._positive(den):
            return
        if sign < 0:
            # k * (num // (k * q)) is at most num // q
            quotient = den // -factor
            if quotient != den and quotient * -factor == den and self._positive(quotient) and self._positive(-factor):
                yield (rest - num // quotient,)
        value = num.constant
        if value is not None and value < 0 and sign < 0:
            yield (rest - factor,)  # -1 or less
        whole = (num + 1) // den
        if sign < 0 and whole * den == num + 1:
            yield (rest + factor * (whole - 1),)
        for inner in _in_order(num):
            split = _linear(num, inner)
            if split is None or not isinstance(inner, Var) or inner.name not in self.ranges:
                continue
            slope, other = split
            if other.depends_on(inner.name):
                continue
            up = self._termwise(slope)
            if up or self._termwise(-slope):
                low, high = self.ranges[inner.name]
                yield (rest + factor * ((other + slope * (high if up == (sign < 0) else low)) // den),)
        if self._termwise(num):
            yield (rest + (factor * num if sign < 0 else const(0)),)
        elif sign > 0:
            yield num, rest


def _single(sym: Sym) -> tuple[Atom, ...]:
    """The atom that an expression is; none for any other."""
    alone = len(sym.terms) == 1 and sym.terms[0][1] == 1 and len(sym.terms[0][0]) == 1
    return sym.terms[0][0] if alone else ()


def _divisor(atom: Atom) -> Atom | None:
    """What is divided by, if it is a size and no number or sum."""
    if not isinstance(atom, (Div, Mod)) or len(atom.den.terms) != 1 or len(atom.den.terms[0][0]) != 1:
        return None
    return atom.den.terms[0][0][0] if all(is_size(name) for name in atom.den.variables()) else None


@lru_cache(maxsize=4096)
def _in_order(sym: Sym) -> tuple[Atom, ...]:
    """The atoms of an expression, each once, in the order in which they are replaced."""
    return tuple(sorted({atom for monomial, _ in sym.terms for atom in monomial}, key=_order))


def _order(atom: Atom) -> tuple[int, str]:
    """Quotients first: what they leave may cancel with the variables that stand beside them; choices last."""
    kinds = (Div, Var, Mod, Opaque)
    return kinds.index(type(atom)), str(atom)


@lru_cache(maxsize=4096)
def _linear(sym: Sym, atom: Atom) -> tuple[Sym, Sym] | None:
    """``(a, b)`` with ``sym == a * atom + b``; None if the atom is squared."""
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coef in sym.terms:
        count = monomial.count(atom)
        if count > 1:
            return None
        if count:
            left = list(monomial)
            left.remove(atom)
            factor[tuple(left)] = coef
        else:
            rest[monomial] = coef
    return Sym.of(factor), Sym.of(rest)
