"""Integers as text."""

from __future__ import annotations

from tl2npu.kernel.symbolic import Atom, Div, Mod, Monomial, Sym, Var

CALLS = {"cdiv": "T.ceildiv", "min": "T.min", "max": "T.max", "truncdiv": "T.truncdiv", "truncmod": "T.truncmod"}
"""Functions of integers that may stand in an index, and how TileLang calls them."""


def integer(value: Sym, names: dict[str, str] | None = None) -> str:
    """A Python expression of the value. ``names``: how axis variables are written."""
    return _sum(value, names or {})


def factor(value: Sym, names: dict[str, str] | None = None) -> str:
    """The same, in parentheses unless it may be multiplied as it is."""
    text = _sum(value, names or {})
    single = value.constant is not None or (len(value.terms) == 1 and not _divides(value.terms[0][0]))
    return text if single and not text.startswith("-") else f"({text})"


def _divides(monomial: Monomial) -> bool:
    return any(isinstance(atom, (Div, Mod)) for atom in monomial)


def _sum(value: Sym, names: dict[str, str]) -> str:
    if not value.terms:
        return "0"
    terms = sorted(
        value.terms, key=lambda term: (term[1] < 0, not term[0], any(a.text.startswith("@") for a in term[0]))
    )
    text = ""
    for monomial, coef in terms:
        product = _product(monomial, abs(coef), names)
        if not text and coef == -1 and len(monomial) == 1 and _divides(monomial):
            text = f"-({product})"  # `-i % 8` is that of `-i`
        elif not text:
            text = f"-{product}" if coef < 0 else product
        else:
            text += f" - {product}" if coef < 0 else f" + {product}"
    return text


def _product(monomial: Monomial, coef: int, names: dict[str, str]) -> str:
    parts = [_atom(atom, names, alone=len(monomial) == 1 and coef == 1) for atom in monomial]
    if coef != 1 or not parts:
        parts.append(str(coef))
    return " * ".join(parts)


def _atom(atom: Atom, names: dict[str, str], alone: bool) -> str:
    if isinstance(atom, Var):
        return names.get(atom.name, atom.name)
    if isinstance(atom, (Div, Mod)):
        sign = "//" if isinstance(atom, Div) else "%"
        text = f"{factor(atom.num, names)} {sign} {_divisor(atom.den, names)}"
        return text if alone else f"({text})"
    return f"{CALLS[atom.head]}({', '.join(_sum(arg, names) for arg in atom.args)})"


def _divisor(value: Sym, names: dict[str, str]) -> str:
    text = _sum(value, names)
    return (
        text if value.constant is not None or (value.atom is not None and not _divides((value.atom,))) else f"({text})"
    )
