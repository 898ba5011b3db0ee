"""What integers can be at most and at least: enough to show that an index stays inside of its axis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tl2npu.kernel.symbolic import Atom, Div, Mod, Opaque, Sym, Var, const, opaque, var

_DEPTH = 6
_FEW = 8
WITHIN = "within"
"""An integer that is its first argument where that is less than the second, and 0 elsewhere."""


def cdiv(num: Sym, den: Sym) -> Sym:
    """Division that rounds up, as an atom of its own unless it is exact."""
    quotient = num // den
    if (quotient * den) == num:
        return quotient
    if num.constant is not None and den.constant:
        return const(-(-num.constant // den.constant))
    return opaque("cdiv", num, den)


def floored(num: Sym, den: Sym) -> Sym:
    """Division that rounds down; ``(n + b - 1) // b`` is ``cdiv(n, b)``, of which more is known."""
    rest = num - den + 1
    if den.constant is not None:
        up = den.constant > 1 and dict(num.terms).get(()) == den.constant - 1
    else:
        up = den.atom is not None and (den.atom,) in dict(num.terms) and (den.atom,) not in dict(rest.terms)
    return cdiv(rest, den) if up and () not in dict(rest.terms) else num // den


def smallest(one: Sym, other: Sym) -> Sym:
    """The smaller of two integers."""
    return _extreme("min", one, other)


def largest(one: Sym, other: Sym) -> Sym:
    """The larger of two integers."""
    return _extreme("max", one, other)


def _extreme(head: str, one: Sym, other: Sym) -> Sym:
    if one == other:
        return one
    difference = (one - other).constant
    if difference is not None:
        return one if (difference < 0) == (head == "min") else other
    return opaque(head, one, other)


@dataclass
class Ranges:
    """``last``: variable -> the largest value that it has, its smallest is 0; ``lets``: variable -> what it stands for;
    ``divides``: pairs ``(n, b)`` for which ``b`` divides ``n``; ``unknown``: loaded integers.

    Other variables are numbers of the launch. ``sure``: those that are at least 1; ``shown``: variable -> its smallest
    value in what the file shows. The host has to check what a proof takes the rest to be at least, ``assumed``, and
    that the integers of ``narrow`` fit into 32 bits. ``proofs``: what was shown before, here or for another reading of
    the same kernel, by the number and all that is known.
    """

    last: dict[str, Sym] = field(default_factory=dict)
    lets: dict[str, Sym] = field(default_factory=dict)
    divides: set[tuple[Sym, Sym]] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)
    shown: Mapping[str, int] = field(default_factory=dict)
    assumed: dict[str, int] = field(default_factory=dict)
    narrow: set[Sym] = field(default_factory=set)
    proofs: dict[object, tuple[bool, frozenset[str]]] = field(default_factory=dict)
    _granted: int | None = None
    _used: set[str] = field(default_factory=set)

    def of_data(self, names: Collection[str]) -> bool:
        """True for integers that are computed from loaded ones."""
        made = (self.lets[name].names for name in names if name in self.lets)
        return not self.unknown.isdisjoint(names) or any(map(self.of_data, made))

    def at_least_zero(self, value: Sym) -> bool:
        """True if the integer is shown to be 0 or more, by what the host can check of its numbers."""
        if self.surely_natural(value):
            return True
        for least in (0, 1):
            self._granted, self._used = least, set()
            try:
                if self._at_least_zero(value):
                    self.assumed |= {name: max(least, self.assumed.get(name, 0)) for name in self._used}
                    return True
            finally:
                self._granted = None
        return False

    def fitting(self, values: Sequence[Sym], shape: Sequence[Sym]) -> None:
        """Note how large integers that become data are, unless it is a sum of sizes, which fits into 32 bits."""
        inner = {f"@{number}": extent - 1 for number, extent in enumerate(shape)}
        kept = {name: self.last[name] for name in inner if name in self.last}
        self.last.update(inner)
        for value in (-value if down else value for value in values for down in (False, True)):
            for self._granted, self._used in ((None, set()), (0, set())):
                moving = self.last.keys() | self.lets.keys() | self.unknown
                found = [bound for bound in self.bounds(value) if not bound.names & moving]
                if found:
                    break
            plain = not found or any(all(len(m) < 2 and coef <= _FEW for m, coef in b.terms if m) for b in found)
            if not plain and not any(name.startswith(("$", "~")) or "/" in name for name in found[0].names):
                self.narrow.add(found[0])
                self.assumed |= {name: max(0, self.assumed.get(name, 0)) for name in self._used}
        self._granted = None
        for name in inner:
            del self.last[name]
        self.last.update(kept)

    def extents(self, *sizes: Sym) -> None:
        """Note sizes of tiles and tensors, which are at least 1."""
        self.sure |= {name.partition("/")[0] for size in sizes if len(size.terms) == 1 for name in size.names}

    def surely_natural(self, value: Sym) -> bool:
        """True if the integer is 0 or more whatever the launch passes."""
        return self._at_least_zero(value)

    def _least(self, name: str) -> int | None:
        """The smallest value of a variable, if it is 0 or more."""
        if name in self.unknown or name in self.lets:
            return None
        if name in self.last:
            return 0
        name = name.partition("/")[0]  # a part of a size
        if name in self.sure or name.startswith(("$", "~")):
            return 1
        shown = self.shown.get(name, self._granted)
        if self._granted is None or shown is None or shown < self._granted:
            return None
        self._used.add(name)
        return self._granted

    def _at_least_zero(self, value: Sym) -> bool:
        sizes = frozenset(self.divides), frozenset(self.unknown), frozenset(self.sure), tuple(self.shown.items())
        key = value, self._granted, tuple(self.last.items()), tuple(self.lets.items()), sizes
        known = self.proofs.get(key)
        if known is None:
            used, self._used = self._used, set()
            known = self.proofs[key] = self._shows(value), frozenset(self._used)
            self._used = used
        self._used |= known[1]
        return known[0]

    def _shows(self, value: Sym) -> bool:
        value = self.named(value)
        flag = next((atom for _, _, atom in _factors(value) if _is_flag(atom)), None)
        if flag is not None:
            return all(map(self._at_least_zero, _split(value, flag)))
        for mono, coef in value.terms:
            for atom in mono:
                if coef > 0 and isinstance(atom, Opaque) and atom.head == "min":
                    rest = Sym.of({tuple(a for a in mono if a is not atom): coef})
                    without = value - Sym.of({mono: coef})
                    return all(self._at_least_zero(without + rest * arg) for arg in atom.args)
        return any(self._positive(bound) for bound in self.bounds(-value))

    def named(self, value: Sym) -> Sym:
        """With what named integers stand for."""
        for _ in range(_DEPTH):
            if value.names.isdisjoint(self.lets):
                break
            value = value.substitute(self.lets)
        return value

    def less(self, value: Sym, bound: Sym) -> bool:
        """True if ``value < bound`` is shown."""
        return self.at_least_zero(bound - value - 1)

    def _positive(self, negated: Sym) -> bool:
        """True if ``negated``, an upper bound of the negative of a value, is at most 0 for sizes of at least 1."""
        value = -negated
        least = {name: self._least(name) for name in value.names}
        shifted = value.substitute({name: var(name) + 1 for name, number in least.items() if number == 1})
        return all(coef >= 0 for _, coef in shifted.terms) and all(
            self._is_natural(atom) for mono, _ in shifted.terms for atom in mono
        )

    def _is_natural(self, atom: Atom) -> bool:
        if isinstance(atom, Var):
            return self._least(atom.name) is not None
        if isinstance(atom, (Div, Mod)):
            return True if isinstance(atom, Mod) else self._natural(atom.num)
        if atom.head in ("cdiv", "min", "max"):
            return (any if atom.head == "max" else all)(self._natural(arg) for arg in atom.args)
        return False

    def _natural(self, value: Sym) -> bool:
        return all(coef >= 0 and all(self._is_natural(atom) for atom in mono) for mono, coef in value.terms)

    def bounds(self, value: Sym, depth: int = _DEPTH) -> Iterator[Sym]:
        """Upper bounds of an integer that have no variable with a range any more."""
        value = self._divided(self.named(value))
        step = self._step(value) if depth else None
        if step is None:
            yield value
            return
        for bound in step:
            yield from self.bounds(bound, depth - 1)

    def _step(self, value: Sym) -> list[Sym] | None:
        """Upper bounds with one variable or division less; variables first, as they are factors of divisions."""
        found = self._without_variable(value)
        if found is not None:
            return [found]
        for mono, coef, atom in _factors(value):
            rule = self._rule(coef, atom)
            if rule is not None:
                rest = Sym.of({tuple(a for a in mono if a is not atom): coef})
                return rule(value - Sym.of({mono: coef}), rest, atom)
        return None

    def _without_variable(self, value: Sym) -> Sym | None:
        """An upper bound where one variable is what it is at most, or 0."""
        for _, _, atom in _factors(value):
            if not isinstance(atom, Var) or atom.name not in self.last or self._decides(atom.name, value):
                continue
            linear = value.substitute({atom.name: 0})
            factor = value.substitute({atom.name: 1}) - linear
            if factor.depends_on(atom.name) or not self._linear(value, atom.name):
                continue
            if self._natural(factor):
                return linear + factor * self.last[atom.name]
            if self._natural(-factor):
                return linear
        return None

    def _rule(self, coef: int, atom: Atom) -> Callable[[Sym, Sym, Any], list[Sym] | None] | None:
        """What bounds a sum that has ``rest * atom`` in it, whose coefficient is ``coef``: of ``without`` and ``rest``.

        None where nothing does; the bounds of a rule that fails are None too.
        """
        if isinstance(atom, Mod):
            return self._of_remainder if coef > 0 else lambda without, rest, atom: [without]
        if isinstance(atom, Div):
            if atom.num.constant == -1:
                return lambda without, rest, atom: [without - rest]
            return self._of_quotient if coef > 0 else None
        if not isinstance(atom, Opaque):
            return None
        if atom.head == ("min" if coef > 0 else "max"):
            return lambda without, rest, atom: [without + rest * arg for arg in atom.args]
        return self._of_count if coef > 0 and atom.head == "cdiv" else None

    def _of_remainder(self, without: Sym, rest: Sym, atom: Mod) -> list[Sym]:
        return [without + rest * (atom.den - 1)]

    def _of_quotient(self, without: Sym, rest: Sym, atom: Div) -> list[Sym] | None:
        narrower = self._narrower(rest, atom)
        if narrower is not None:
            return [without + bound for bound in narrower]
        over = self._over(without, rest, atom.num, atom.den, const(0))
        whole = self._natural(atom.num) and self._natural(atom.den - 1)
        return [without + rest * atom.num] if over is None and self._natural(rest) and whole else over

    def _of_count(self, without: Sym, rest: Sym, atom: Opaque) -> list[Sym] | None:
        num, den = atom.args
        counts = list(self._counts(num, den, _DEPTH - 2))
        return [without + rest * count for count in counts] or self._over(without, rest, num, den, den - 1)

    def _decides(self, name: str, value: Sym) -> bool:
        """True if a variable is in the end of another one, or in a minimum: it cancels out there if they go first."""
        ends = (self.last[other] for other in value.names & self.last.keys() if other != name)
        minima = (
            atom for _, coef, atom in _factors(value) if coef > 0 and isinstance(atom, Opaque) and atom.head == "min"
        )
        return any(name in end.names for end in ends) or any(name in atom.names for atom in minima)

    def _linear(self, value: Sym, name: str) -> bool:
        return all(
            sum(isinstance(a, Var) and a.name == name for a in mono) <= 1
            and not any(not isinstance(a, Var) and name in a.names for a in mono)
            for mono, _ in value.terms
        )

    def _over(self, without: Sym, rest: Sym, num: Sym, den: Sym, more: Sym) -> list[Sym] | None:
        """``rest * (num / den)`` where ``den`` divides ``rest``."""
        quotient = rest // den
        if quotient * den == rest:
            return [without + quotient * (num + more)]
        return None

    def _counts(self, num: Sym, den: Sym, depth: int) -> Iterator[Sym]:
        """What ``cdiv(num, den)`` is at most, by the bounds of ``num`` that are multiples of ``den``."""
        num = self._divided(self.named(num))
        count = num // den
        if count * den == num:
            yield count
        elif depth:
            for bound in self._step(num) or ():
                yield from self._counts(bound, den, depth - 1)

    def _narrower(self, rest: Sym, atom: Div) -> list[Sym] | None:
        """``rest * (num // (rest * q))``, which is at most ``num // q``."""
        quotient = atom.den // rest if not rest.is_zero else const(0)
        if quotient.is_zero or quotient * rest != atom.den or (rest.constant == 1 and quotient == atom.den):
            nums = list(self.bounds(atom.num, _DEPTH - 2))
            return [rest * (num // atom.den) for num in nums if num != atom.num] or None
        return [num // quotient for num in self.bounds(atom.num, _DEPTH - 2)]

    def _divided(self, value: Sym) -> Sym:
        """With every ``cdiv(n, b)`` and ``n // b`` of which it is known that ``b`` divides ``n`` multiplied out."""
        if not self.divides:
            return value
        total = const(0)
        for mono, coef in value.terms:
            term = Sym.of({mono: coef})
            for atom in mono:
                pair = _quotient(atom)
                if pair is not None and self._divide(*pair):
                    rest = Sym.of({tuple(a for a in mono if a is not atom): coef})
                    over = rest // pair[1]
                    if over * pair[1] == rest:
                        term = pair[0] * over
                        break
            total = total + term
        return total

    def _divide(self, num: Sym, den: Sym) -> bool:
        """True if every term of ``num`` is known to be a multiple of ``den``."""
        terms = [Sym.of({mono: coef}) for mono, coef in num.terms]
        known = [one for one, other in self.divides if other == den]
        return (num, den) in self.divides or all(any((term // n) * n == term for n in (den, *known)) for term in terms)


def _factors(value: Sym) -> Iterator[tuple[tuple[Atom, ...], int, Atom]]:
    """Every factor of every term, with the term."""
    for mono, coef in value.terms:
        for atom in mono:
            yield mono, coef, atom


def _is_flag(atom: Atom) -> bool:
    """True for an integer that is 1 where a condition holds, and 0 elsewhere: ``min(1, max(0, n - i))``."""
    if not isinstance(atom, Opaque) or atom.head != "min" or const(1) not in atom.args:
        return False
    more = next((arg.atom for arg in atom.args if isinstance(arg.atom, Opaque) and arg.atom.head == "max"), None)
    return more is not None and (const(0) in more.args or (more.args[0] + more.args[1]).is_zero)


def _split(value: Sym, flag: Atom) -> tuple[Sym, Sym]:
    """An integer where a flag is 0, and where it is 1."""
    no = Sym.of({mono: coef for mono, coef in value.terms if flag not in mono})
    yes = no
    for mono, coef in value.terms:
        if flag in mono:
            yes = yes + Sym.of({tuple(atom for atom in mono if atom != flag): coef})
    return no, yes


def _quotient(atom: Atom) -> tuple[Sym, Sym] | None:
    if isinstance(atom, Div):
        return atom.num, atom.den
    if isinstance(atom, Opaque) and atom.head == "cdiv":
        return atom.args[0], atom.args[1]
    return None
