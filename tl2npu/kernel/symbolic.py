"""Symbolic integers: polynomials over atoms, with floor division and modulo.

A ``Sym`` is a sum of integer multiples of products of atoms. An atom is a variable, a floor division, a modulo or an
opaque call that could not be split further. Two expressions that have the same normal form are equal for every value of
their variables; different normal forms prove nothing.

Division follows Python (and TVM's ``floordiv``): ``(d * q + r) // d == q + r // d`` for every integer ``q`` and ``r``,
which is the one rule that the normal form applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

_REMEMBERED = 8192
"""How many results of each operation are kept: the same few expressions are added and divided over and over again."""

_EXTREMA: Mapping[str, Callable[[list[int]], int]] = {"min": min, "max": max}


class _Atom:
    """What all atoms have: a text and the names in it, worked out once; equal atoms have equal parts.

    Atoms and polynomials never change. They are no frozen dataclasses because these hash and compare every part again
    each time that they are looked up.
    """

    __slots__ = ("_hash", "names", "parts", "plain", "text")

    def __init__(self, parts: tuple[object, ...], text: str, names: frozenset[str], plain: bool) -> None:
        self.parts = parts
        self.text = text
        self.names = names
        self.plain = plain  # no opaque atom in it
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, _Atom)
        return self._hash == other._hash and self.parts == other.parts

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: _Atom) -> bool:
        return repr(self) < repr(other)

    def __str__(self) -> str:
        return self.text


class Var(_Atom):
    """A named integer (a parameter, a loop variable, a block index)."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__((name,), name, frozenset((name,)), True)

    def __repr__(self) -> str:
        return f"Var(name={self.name!r})"


class Div(_Atom):
    """``num // den``, not divisible any further."""

    __slots__ = ("den", "num")

    def __init__(self, num: Sym, den: Sym) -> None:
        self.num, self.den = num, den
        super().__init__((num, den), f"({num}) // ({den})", num.names | den.names, num.plain and den.plain)

    def __repr__(self) -> str:
        return f"Div(num={self.num!r}, den={self.den!r})"


class Mod(_Atom):
    """``num % den``."""

    __slots__ = ("den", "num")

    def __init__(self, num: Sym, den: Sym) -> None:
        self.num, self.den = num, den
        super().__init__((num, den), f"({num}) % ({den})", num.names | den.names, num.plain and den.plain)

    def __repr__(self) -> str:
        return f"Mod(num={self.num!r}, den={self.den!r})"


class Opaque(_Atom):
    """A call or an expression that is only ever equal to itself; ``args`` are normalised."""

    __slots__ = ("args", "head")

    def __init__(self, head: str, args: tuple[Sym, ...] = ()) -> None:
        self.head, self.args = head, args
        text = f"{head}({', '.join(map(str, args))})" if args else head
        super().__init__((head, args), text, frozenset[str]().union(*(arg.names for arg in args)), False)

    def __repr__(self) -> str:
        return f"Opaque(head={self.head!r}, args={self.args!r})"


Atom = Var | Div | Mod | Opaque
Monomial = tuple[Atom, ...]


def _key(term: tuple[Monomial, int]) -> tuple[int, str]:
    monomial = term[0]
    if len(monomial) == 1:
        return 1, monomial[0].text
    return len(monomial), " * ".join([atom.text for atom in monomial])


def _text(atom: Atom) -> str:
    return atom.text


def _by_text(atom: Atom) -> tuple[str, Atom]:
    return atom.text, atom


class Sym:
    """A polynomial with integer coefficients; build it with :func:`const`, :func:`var` and the operators.

    ``constant`` is the value if this is a plain number, else None; ``atom`` the atom if it is nothing but one atom.
    """

    __slots__ = ("_hash", "_names", "_plain", "_text", "atom", "constant", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self.constant: int | None = None
        self.atom: Atom | None = None
        self._hash: int | None = None
        self._text: str | None = None
        self._names: frozenset[str] | None = None
        self._plain: bool | None = None
        if not terms:
            self.constant = 0
        elif len(terms) == 1:
            monomial, coef = terms[0]
            if not monomial:
                self.constant = coef
            elif coef == 1 and len(monomial) == 1:
                self.atom = monomial[0]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Sym:
            return NotImplemented
        return hash(self) == hash(other) and self.terms == other.terms

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = self._hash = hash(self.terms)
        return found

    def __repr__(self) -> str:
        return f"Sym(terms={self.terms!r})"

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Sym:
        """The canonical polynomial of ``terms``: zero coefficients dropped, monomials sorted."""
        kept = [item for item in terms.items() if item[1]]
        if len(kept) > 1:
            kept.sort(key=_key)
        return Sym(tuple(kept))

    @property
    def is_zero(self) -> bool:
        """True for the number 0."""
        return not self.terms

    @property
    def names(self) -> frozenset[str]:
        """Names of all variables in it."""
        found = self._names
        if found is None:
            found = self._names = frozenset[str]().union(*(atom.names for mono, _ in self.terms for atom in mono))
        return found

    @property
    def plain(self) -> bool:
        """Nothing in it is opaque."""
        found = self._plain
        if found is None:
            found = self._plain = all(atom.plain for mono, _ in self.terms for atom in mono)
        return found

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
        return self.names

    def depends_on(self, name: str) -> bool:
        """True if the variable ``name`` occurs anywhere in it."""
        return name in self.names

    def __add__(self, other: Sym | int) -> Sym:
        right = _lift(other)
        if not right.terms:
            return self
        return _sum(self, right) if self.terms else right

    __radd__ = __add__

    def __neg__(self) -> Sym:
        return Sym(tuple([(monomial, -coef) for monomial, coef in self.terms]))

    def __sub__(self, other: Sym | int) -> Sym:
        right = _lift(other)
        if not right.terms:
            return self
        return _difference(self, right)

    def __rsub__(self, other: int) -> Sym:
        return _lift(other) - self

    def __mul__(self, other: Sym | int) -> Sym:
        right = _lift(other)
        if right.constant is not None:
            return _scaled(self, right.constant)
        if self.constant is not None:
            return _scaled(right, self.constant)
        return _product(self, right)

    __rmul__ = __mul__

    def __floordiv__(self, other: Sym | int) -> Sym:
        return _quotient(self, _lift(other))

    def __mod__(self, other: Sym | int) -> Sym:
        return _remainder(self, _lift(other))

    def substitute(self, values: Mapping[str, Sym | int]) -> Sym:
        """Replace variables by name and normalise again."""
        found = tuple([(name, _lift(values[name])) for name in self.names if name in values])
        return _substituted(self, found) if found else self

    def map_variables(self, replace: Callable[[str], Sym | None]) -> Sym:
        """Replace every variable for which ``replace`` returns something."""
        names = dict.fromkeys(atom.name for atom in self.atoms() if isinstance(atom, Var))
        found = tuple([(name, value) for name in names if (value := replace(name)) is not None])
        return _substituted(self, found) if found else self

    def evaluate(self, values: Mapping[str, int]) -> int | None:
        """The number for concrete ``values``; None if a variable is missing or an atom is opaque."""
        if self.constant is not None:
            return self.constant
        try:
            if self.plain and self.names <= values.keys():
                return _number(self, values)
            return self.substitute(values).constant
        except ZeroDivisionError:
            return None

    def __str__(self) -> str:
        if self._text is None:
            parts = []
            for monomial, coef in self.terms:
                alone = len(monomial) == 1 and coef == 1
                texts = [f"({it.text})" if type(it) in (Div, Mod) and not alone else it.text for it in monomial]
                parts.append(" * ".join(texts if coef == 1 and texts else [str(coef), *texts]))
            self._text = " + ".join(parts) or "0"
        return self._text


# the operations, each with the results of its last calls -------------------------------------------------------------


@lru_cache(_REMEMBERED)
def _sum(left: Sym, right: Sym) -> Sym:
    total = dict(left.terms)
    for monomial, coef in right.terms:
        total[monomial] = total.get(monomial, 0) + coef
    return Sym.of(total)


@lru_cache(_REMEMBERED)
def _difference(left: Sym, right: Sym) -> Sym:
    total = dict(left.terms)
    for monomial, coef in right.terms:
        total[monomial] = total.get(monomial, 0) - coef
    return Sym.of(total)


def _scaled(sym: Sym, factor: int) -> Sym:
    if factor == 1:
        return sym
    return Sym(tuple([(monomial, coef * factor) for monomial, coef in sym.terms])) if factor else const(0)


@lru_cache(_REMEMBERED)
def _product(left: Sym, right: Sym) -> Sym:
    total: dict[Monomial, int] = {}
    for one, coef in left.terms:
        for other, factor in right.terms:
            monomial = tuple(sorted(one + other, key=_by_text))
            total[monomial] = total.get(monomial, 0) + coef * factor
    return Sym.of(total)


@lru_cache(_REMEMBERED)
def _quotient(num: Sym, den: Sym) -> Sym:
    quotient, rest = _divide(num, den)
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


@lru_cache(_REMEMBERED)
def _remainder(num: Sym, den: Sym) -> Sym:
    _, rest = _divide(num, den)
    value, bound = rest.constant, den.constant
    if rest.is_zero:
        return rest
    if value is not None and bound:
        return const(value % bound)
    return Sym.of({(Mod(rest, den),): 1})


@lru_cache(_REMEMBERED)
def _substituted(sym: Sym, values: tuple[tuple[str, Sym], ...]) -> Sym:
    """``values``: what names in the expression become. What has none of them is normalised already."""
    by_name = dict(values)
    total = const(0)
    for monomial, coef in sym.terms:
        product = const(coef)
        for atom in monomial:
            product = product * _with(atom, by_name)
        total = total + product
    return total


def _with(atom: Atom, values: Mapping[str, Sym]) -> Sym:
    if values.keys().isdisjoint(atom.names):
        return Sym((((atom,), 1),))
    if isinstance(atom, Var):
        return values[atom.name]
    if isinstance(atom, Div):
        return atom.num.substitute(values) // atom.den.substitute(values)
    if isinstance(atom, Mod):
        return atom.num.substitute(values) % atom.den.substitute(values)
    return opaque(atom.head, *(arg.substitute(values) for arg in atom.args))


def _number(sym: Sym, values: Mapping[str, int]) -> int:
    """The value of an expression in which everything is known."""
    total = 0
    for monomial, coef in sym.terms:
        for atom in monomial:
            if isinstance(atom, Var):
                coef *= values[atom.name]
            elif isinstance(atom, Div):
                coef *= _number(atom.num, values) // _number(atom.den, values)
            else:
                assert isinstance(atom, Mod)
                coef *= _number(atom.num, values) % _number(atom.den, values)
        total += coef
    return total


@lru_cache(_REMEMBERED, typed=True)
def const(value: int) -> Sym:
    """A plain number."""
    return Sym(()) if value == 0 else Sym((((), value),))


@lru_cache(_REMEMBERED)
def var(name: str) -> Sym:
    """A variable."""
    return Sym((((Var(name),), 1),))


@lru_cache(_REMEMBERED)
def opaque(head: str, *args: Sym) -> Sym:
    """Something that is only equal to itself; the smallest or largest of numbers is a number."""
    if head in _EXTREMA:
        numbers = [arg.constant for arg in args if arg.constant is not None]
        if numbers and len(numbers) == len(args):
            return const(_EXTREMA[head](numbers))
    return Sym((((Opaque(head, args),), 1),))


def product(factors: Iterable[Sym]) -> Sym:
    """All factors, multiplied."""
    total = const(1)
    for factor in factors:
        total = total * factor
    return total


def ceildiv(num: Sym, den: Sym) -> Sym:
    """``T.ceildiv``: rounds up for positive ``den``."""
    return (num + den - 1) // den


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
    atoms = sorted({atom for value in (num, den) for mono, _ in value.terms for atom in mono}, key=_text)

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
