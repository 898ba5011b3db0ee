"""Symbolic integers: polynomials over atoms, with floor division and modulo.

A ``Sym`` is a sum of integer multiples of products of atoms. An atom is a variable, a floor division, a modulo or an
opaque call that could not be split further. Two expressions that have the same normal form are equal for every value of
their variables; different normal forms prove nothing.

Division follows Python (and TVM's ``floordiv``): ``(d * q + r) // d == q + r // d`` for every integer ``q`` and ``r``,
which is the one rule that the normal form applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Var:
    """A named integer (a parameter, a loop variable, a block index)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Div:
    """``num // den``, not divisible any further."""

    num: Sym
    den: Sym

    def __str__(self) -> str:
        return f"({self.num}) // ({self.den})"


@dataclass(frozen=True)
class Mod:
    """``num % den``."""

    num: Sym
    den: Sym

    def __str__(self) -> str:
        return f"({self.num}) % ({self.den})"


@dataclass(frozen=True)
class Opaque:
    """A call or an expression that is only ever equal to itself; ``args`` are normalised."""

    head: str
    args: tuple[Sym, ...] = ()

    def __str__(self) -> str:
        return f"{self.head}({', '.join(map(str, self.args))})" if self.args else self.head


Atom = Var | Div | Mod | Opaque
Monomial = tuple[Atom, ...]


def _key(monomial: Monomial) -> tuple[int, str]:
    return len(monomial), " * ".join(str(atom) for atom in monomial)


@dataclass(frozen=True)
class Sym:
    """A polynomial with integer coefficients; build it with :func:`const`, :func:`var` and the operators."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Sym:
        """The canonical polynomial of ``terms``: zero coefficients dropped, monomials sorted."""
        kept = ((mono, coef) for mono, coef in terms.items() if coef)
        return Sym(tuple(sorted(kept, key=lambda item: _key(item[0]))))

    @cached_property
    def as_dict(self) -> dict[Monomial, int]:
        """Monomial to coefficient."""
        return dict(self.terms)

    @property
    def constant(self) -> int | None:
        """The value if this is a plain number, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def is_zero(self) -> bool:
        """True for the number 0."""
        return not self.terms

    @property
    def atom(self) -> Atom | None:
        """The atom if this is nothing but one atom, else None."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            return self.terms[0][0][0]
        return None

    def atoms(self) -> Iterator[Atom]:
        """Every atom, also those nested in divisions and calls."""
        for monomial, _ in self.terms:
            for atom in monomial:
                yield atom
                if isinstance(atom, (Div, Mod)):
                    yield from atom.num.atoms()
                    yield from atom.den.atoms()
                elif isinstance(atom, Opaque):
                    for arg in atom.args:
                        yield from arg.atoms()

    def variables(self) -> frozenset[str]:
        """Names of all variables in it."""
        return frozenset(atom.name for atom in self.atoms() if isinstance(atom, Var))

    def depends_on(self, name: str) -> bool:
        """True if the variable ``name`` occurs anywhere in it."""
        return any(isinstance(atom, Var) and atom.name == name for atom in self.atoms())

    def __add__(self, other: Sym | int) -> Sym:
        total = dict(self.terms)
        for monomial, coef in _lift(other).terms:
            total[monomial] = total.get(monomial, 0) + coef
        return Sym.of(total)

    __radd__ = __add__

    def __neg__(self) -> Sym:
        return Sym(tuple((monomial, -coef) for monomial, coef in self.terms))

    def __sub__(self, other: Sym | int) -> Sym:
        return self + (-_lift(other))

    def __rsub__(self, other: int) -> Sym:
        return _lift(other) - self

    def __mul__(self, other: Sym | int) -> Sym:
        total: dict[Monomial, int] = {}
        for left, coef in self.terms:
            for right, factor in _lift(other).terms:
                monomial = tuple(sorted(left + right, key=lambda atom: (str(atom), repr(atom))))
                total[monomial] = total.get(monomial, 0) + coef * factor
        return Sym.of(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: Sym | int) -> Sym:
        den = _lift(other)
        quotient, rest = _divide(self, den)
        if rest.is_zero:
            return quotient
        value, bound = rest.constant, den.constant
        if value is not None and bound:
            return quotient + value // bound
        inner = rest.atom
        if isinstance(inner, Div) and bound is not None and bound > 0:
            # floor(floor(a / b) / c) == floor(a / (b * c)) for every positive integer c
            return quotient + inner.num // (inner.den * bound)
        return quotient + Sym.of({(Div(rest, den),): 1})

    def __mod__(self, other: Sym | int) -> Sym:
        den = _lift(other)
        _, rest = _divide(self, den)
        value, bound = rest.constant, den.constant
        if rest.is_zero:
            return rest
        if value is not None and bound:
            return const(value % bound)
        return Sym.of({(Mod(rest, den),): 1})

    def substitute(self, values: Mapping[str, Sym | int]) -> Sym:
        """Replace variables by name and normalise again."""
        return self.map_variables(lambda name: _lift(values[name]) if name in values else None)

    def map_variables(self, replace: Callable[[str], Sym | None]) -> Sym:
        """Replace every variable for which ``replace`` returns something."""
        total = const(0)
        for monomial, coef in self.terms:
            product = const(coef)
            for atom in monomial:
                product = product * _map_atom(atom, replace)
            total = total + product
        return total

    def evaluate(self, values: Mapping[str, int]) -> int | None:
        """The number for concrete ``values``; None if a variable is missing or an atom is opaque."""
        try:
            return self.substitute(dict(values)).constant
        except ZeroDivisionError:
            return None

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts = []
        for monomial, coef in self.terms:
            product = " * ".join(str(atom) for atom in monomial)
            parts.append(str(coef) if not product else product if coef == 1 else f"{coef} * {product}")
        return " + ".join(parts)


def const(value: int) -> Sym:
    """A plain number."""
    return Sym(()) if value == 0 else Sym((((), value),))


def var(name: str) -> Sym:
    """A variable."""
    return Sym((((Var(name),), 1),))


def opaque(head: str, *args: Sym) -> Sym:
    """Something that is only equal to itself."""
    return Sym((((Opaque(head, args),), 1),))


def ceildiv(num: Sym, den: Sym) -> Sym:
    """``T.ceildiv``: rounds up for positive ``den``."""
    return (num + den - 1) // den


def at_most(condition: Sym) -> tuple[Sym, Sym] | None:
    """The two sides of a condition that says ``left <= right``, however it is spelled; None for any other."""
    atom = condition.atom
    if not isinstance(atom, Opaque) or len(atom.args) != 2:
        return None
    left, right = atom.args
    if atom.head in ("GreaterThan", "GreaterThanEqual"):
        left, right = right, left
    elif atom.head not in ("LessThan", "LessThanEqual"):
        return None
    return (left, right - 1) if atom.head in ("LessThan", "GreaterThan") else (left, right)


def _lift(value: Sym | int) -> Sym:
    return value if isinstance(value, Sym) else const(value)


def _divide(num: Sym, den: Sym) -> tuple[Sym, Sym]:
    """``(q, r)`` with ``num == q * den + r``; ``q`` takes every term that ``den`` divides exactly."""
    if den.is_zero:
        raise ZeroDivisionError("division by zero in an index expression")
    if num == den:
        return const(1), const(0)
    if len(den.terms) != 1:
        exact = _exact(num, den)
        return (exact, const(0)) if exact is not None else (const(0), num)
    (divisor, factor), quotient, rest = den.terms[0], {}, {}
    for monomial, coef in num.terms:
        left = _without(monomial, divisor)
        if left is None:
            rest[monomial] = coef
            continue
        if divisor == ():
            whole, part = divmod(coef, factor)
        elif coef % factor == 0:
            whole, part = coef // factor, 0
        else:
            whole, part = 0, coef
        quotient[left] = whole
        if part:
            rest[monomial] = part
    return Sym.of(quotient), Sym.of(rest)


def _exact(num: Sym, den: Sym) -> Sym | None:
    """The polynomial that times ``den`` is ``num``, by long division in graded lexicographic order; None if none is."""
    atoms = sorted({atom for value in (num, den) for mono, _ in value.terms for atom in mono}, key=str)

    def rank(term: tuple[Monomial, int]) -> tuple[int, tuple[int, ...]]:
        return len(term[0]), tuple(term[0].count(atom) for atom in atoms)

    lead, factor = max(den.terms, key=rank)
    quotient, rest = const(0), num
    for _ in range(len(num.terms) + 1):
        if rest.is_zero:
            return quotient
        monomial, coef = max(rest.terms, key=rank)
        left = _without(monomial, lead)
        if left is None or coef % factor:
            return None
        step = Sym.of({left: coef // factor})
        quotient, rest = quotient + step, rest - step * den
    return None


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _map_atom(atom: Atom, replace: Callable[[str], Sym | None]) -> Sym:
    if isinstance(atom, Var):
        found = replace(atom.name)
        return found if found is not None else Sym((((atom,), 1),))
    if isinstance(atom, Div):
        return atom.num.map_variables(replace) // atom.den.map_variables(replace)
    if isinstance(atom, Mod):
        return atom.num.map_variables(replace) % atom.den.map_variables(replace)
    return opaque(atom.head, *(arg.map_variables(replace) for arg in atom.args))
