"""The numbers that expressions come to: each expression is made a function once, and asked for many values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter

from tl2npu.kernel.comparisons import OPERATORS
from tl2npu.kernel.ranges.bounds import EITHER
from tl2npu.kernel.symbolic import Atom, Div, Mod, Monomial, Sym, Var

_KEPT = 4096

Values = Mapping[str, int]
Function = Callable[[Values], int]


def number_of(sym: Sym, values: Values) -> int | None:
    """The value of an expression; None if something in it is not known."""
    if sym.constant is not None:
        return sym.constant
    try:
        return function_of(sym)(values)
    except (KeyError, ZeroDivisionError):
        return None


@lru_cache(_KEPT)
def function_of(sym: Sym) -> Function:
    """The expression as a function, which raises KeyError for what has no number, and ZeroDivisionError."""
    if sym.atom is not None:
        return _of_atom(sym.atom)
    products = [(coef, _of_product(monomial)) for monomial, coef in sym.terms if monomial]
    constant = sum(coef for monomial, coef in sym.terms if not monomial)
    if len(products) == 1:
        factor, only = products[0]
        return lambda values: factor * only(values) + constant

    def total(values: Values) -> int:
        result = constant
        for coef, product in products:
            result += coef * product(values)
        return result

    return total


def _of_product(monomial: Monomial) -> Function:
    first = _of_atom(monomial[0])
    if len(monomial) == 1:
        return first
    rest = _of_product(monomial[1:])
    return lambda values: first(values) * rest(values)


@lru_cache(_KEPT)
def _of_atom(atom: Atom) -> Function:
    if isinstance(atom, Var):
        return itemgetter(atom.name)
    if isinstance(atom, (Div, Mod)):
        num, den = function_of(atom.num), function_of(atom.den)
        if isinstance(atom, Div):
            return lambda values: num(values) // den(values)
        return lambda values: num(values) % den(values)
    args = [function_of(arg) for arg in atom.args]
    if atom.head == EITHER:
        if_so, if_not, condition = args
        return lambda values: (if_so if condition(values) else if_not)(values)
    if atom.head in ("min", "max") and args:
        extreme = min if atom.head == "min" else max
        return lambda values: extreme([arg(values) for arg in args])
    binary = _BINARY.get(atom.head)
    if binary is not None and len(args) == 2:
        left, right = args
        return lambda values: int(binary(left(values), right(values)))
    return _unknown


def _truncated(num: int, den: int) -> int:
    return num // den if (num < 0) == (den < 0) else -(-num // den)


_BINARY: Mapping[str, Callable[[int, int], int]] = {
    **OPERATORS,
    "cdiv": lambda num, den: -(-num // den),
    "truncdiv": _truncated,
    "truncmod": lambda num, den: num - _truncated(num, den) * den,
}


def _unknown(values: Values) -> int:
    raise KeyError
