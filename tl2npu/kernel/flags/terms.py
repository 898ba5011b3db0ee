"""Integers and conditions of a kernel with numbers for what its surroundings decide.

Whatever does not depend on a loop of the kernel (``K // block_K``, ``S1``, the block index) is a *free* integer of its
own: any small number may stand for it, and those around the numbers that conditions compare with, also such that the
sizes could never give. What the flags come to for every such choice, they come to for every size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.comparisons import OPERATORS
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.ranges.bounds import is_size
from tl2npu.kernel.ranges.numbers import function_of
from tl2npu.kernel.symbolic import Atom, Div, Mod, Monomial, Opaque, Sym, Var, const, opaque, var

_BOOLEAN = {"And": "and", "Or": "or", "Not": "not"}
_TURNS = "turns"
_FEW = 3
_SLOTS = 4
_SMALL = 40


class Unknown(Exception):
    """The value cannot be told: it is loaded, or changes in a way that is not followed."""


Numbers = dict[str, int]


def value(term: Sym, numbers: Numbers) -> int:
    """The number that a term has; raises :class:`Unknown`, and ZeroDivisionError."""
    try:
        return function_of(term)(numbers)
    except KeyError:
        raise Unknown from None


def is_known(atom: Atom) -> bool:
    """Whether :func:`value` follows an atom itself, as it does not follow loads and calls."""
    return not isinstance(atom, Opaque) or atom.head in ("min", "max", *OPERATORS)


@dataclass(frozen=True)
class Condition:
    """``and``, ``or``, ``not`` of parts; a comparison or a plain value in ``term``; none of them: unknown."""

    head: str = ""
    parts: tuple[Condition, ...] = ()
    term: Sym | None = None

    def holds(self, numbers: Numbers) -> bool:
        """Whether it is true; raises :class:`Unknown`."""
        if self.head == "not":
            return not self.parts[0].holds(numbers)
        if self.head:
            found = {_known(part, numbers) for part in self.parts}
            decided = self.head == "or"
            if decided in found:
                return decided
            if None in found:
                raise Unknown
            return not decided
        if self.term is None:
            raise Unknown
        return value(self.term, numbers) != 0

    def terms(self) -> Iterator[Sym]:
        """Every term in it."""
        if self.term is not None:
            yield self.term
        for part in self.parts:
            yield from part.terms()


def _known(part: Condition, numbers: Numbers) -> bool | None:
    try:
        return part.holds(numbers)
    except Unknown:
        return None


@dataclass(eq=False)
class Terms:
    """Makes terms of one kernel: ``loops`` are its loop variables, ``launch`` its block indices.

    ``values``: what is known of the names of the factory. ``free`` holds the free integers that were met, each with
    what it stands for.
    """

    evaluator: Evaluator
    loops: frozenset[str]
    launch: frozenset[str]
    values: Mapping[str, int] = field(default_factory=dict)
    free: dict[str, Atom] = field(default_factory=dict)
    made: dict[Sym, Sym | None] = field(default_factory=dict)

    def term(self, sym: Sym) -> Sym | None:
        """The expression over loop variables and free integers, None if its value cannot be told."""
        if sym not in self.made:
            self.made[sym] = self._made(sym)
        return self.made[sym]

    def _made(self, sym: Sym) -> Sym | None:
        known = {name: self.values[name] for name in sym.variables() if name in self.values}
        try:
            return self._sum(sym.substitute(known) if known else sym)
        except (Unknown, ZeroDivisionError):
            return None

    def _sum(self, sym: Sym) -> Sym:
        total = const(0)
        for monomial, coef in sym.terms:
            product = const(coef)
            fixed = tuple(atom for atom in monomial if not self._turns(atom))
            if fixed:
                product = product * self._fixed(fixed)
            for atom in monomial:
                if self._turns(atom):
                    product = product * self._turning(atom)
            total = total + product
        return total

    def _turns(self, atom: Atom) -> bool:
        return bool(Sym((((atom,), 1),)).variables() & self.loops)

    def _fixed(self, product: Monomial) -> Sym:
        """A free integer for what no loop changes."""
        whole = Sym(((product, 1),))
        if not whole.variables() and all(is_known(atom) for atom in whole.atoms()):
            return const(value(whole, {}))
        changing = [a for a in whole.atoms() if isinstance(a, Opaque) and a.head.startswith("load ")]
        if changing or not all(is_size(name) or name in self.launch for name in whole.variables()):
            raise Unknown
        name = f"={whole}"
        self.free[name] = product[0] if len(product) == 1 else Var(name)
        return var(name)

    def _turning(self, atom: Atom) -> Sym:
        if isinstance(atom, Var):
            return Sym((((atom,), 1),))
        if isinstance(atom, Div):
            return self._sum(atom.num) // self._sum(atom.den)
        if isinstance(atom, Mod):
            return self._sum(atom.num) % self._sum(atom.den)
        if atom.head not in ("min", "max", *OPERATORS):
            raise Unknown
        return opaque(atom.head, *(self._sum(arg) for arg in atom.args))

    def condition(self, node: cst.BaseExpression, env: Env) -> Condition:
        """A condition of Python or of ``T.And``, ``T.Or`` and ``T.Not``."""
        if isinstance(node, cst.BooleanOperation):
            head = "and" if isinstance(node.operator, cst.And) else "or"
            return Condition(head, (self.condition(node.left, env), self.condition(node.right, env)))
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            return Condition("not", (self.condition(node.expression, env),))
        if isinstance(node, cst.Call):
            resolved = self.evaluator.names.resolve(node.func) or ""
            head = _BOOLEAN.get(resolved.rsplit(".", 1)[-1], "") if resolved.startswith("tilelang.") else ""
            args = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
            if head and len(args) == len(node.args) == (1 if head == "not" else 2):
                return Condition(head, tuple(self.condition(arg, env) for arg in args))
        if isinstance(node, cst.Comparison) and len(node.comparisons) > 1:
            return Condition()
        return Condition(term=self.term(self.evaluator.sym(node, env)))

    def some_turns(self, name: str) -> Sym:
        """A free integer for a loop whose turns are all alike."""
        self.free[name] = Opaque(_TURNS)
        return var(name)

    def domains(
        self, used: Iterable[Sym], events: Sequence[Sym], conditions: Sequence[Sym]
    ) -> dict[str, tuple[int, ...]]:
        """The numbers to try for each free integer of the terms: few, and those around what conditions compare with."""
        slots: set[str] = set()
        last = max(_SLOTS, len({event.constant for event in events} - {None}))
        for event in events:
            for atom in event.atoms():
                if isinstance(atom, Mod):
                    slots |= atom.den.variables()
        marks = {abs(mark) for term in conditions for mark in constants(term) if abs(mark) <= _SMALL}
        near = {number for mark in marks for number in (mark, mark + 1, mark + 2)}
        near |= {number for term in conditions for den in _periods(term) for number in (den, 2 * den)}
        names = {name for term in used for name in term.variables() if name in self.free}
        return {name: tuple(sorted(self._domain(name, last if name in slots else 0, near))) for name in sorted(names)}

    def _domain(self, name: str, slots: int, near: set[int]) -> set[int]:
        atom = self.free[name]
        if isinstance(atom, Opaque) and atom.head in OPERATORS:
            return {0, 1}
        if isinstance(atom, Opaque) and atom.head == _TURNS:
            return {1, 2, 3}
        if isinstance(atom, Var) and atom.name in self.launch:
            return {0, 1, *near}
        first = 1 if isinstance(atom, Var) or slots else 0
        return {n for n in near if n > 0} | set(range(first, (slots or _FEW) + 1))


def constants(term: Sym) -> Iterator[int]:
    """Every number in it."""
    for monomial, coef in term.terms:
        if monomial == ():
            yield coef
        for atom in monomial:
            if isinstance(atom, Opaque):
                for arg in atom.args:
                    yield from constants(arg)


def _periods(term: Sym) -> Iterator[int]:
    """The numbers that a term is taken modulo of."""
    for atom in term.atoms():
        den = atom.den.constant if isinstance(atom, (Div, Mod)) else None
        if den is not None and 1 < den <= _SMALL:
            yield den
