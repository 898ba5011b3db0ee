"""Source text for a symbolic integer, where no smaller rewrite of the author's own text does."""

from __future__ import annotations

from tl2npu.kernel.symbolic import Atom, Div, Mod, Opaque, Sym, Var


class Unrenderable(Exception):
    """The value contains something that has no text of its own."""


def render(sym: Sym) -> str:
    """The expression as Python text; raises :class:`Unrenderable`."""
    if not sym.terms:
        return "0"
    parts: list[str] = []
    for monomial, coef in sorted(sym.terms, key=lambda term: (-len(term[0]), term[1] < 0)):
        factors = [_atom(atom) for atom in monomial]
        if abs(coef) != 1 or not factors:
            factors.append(str(abs(coef)))
        text = " * ".join(factors)
        parts.append(("- " if coef < 0 else "+ ") + text)
    joined = " ".join(parts)
    return joined[2:] if joined.startswith("+ ") else "-" + joined[2:]


def _atom(atom: Atom) -> str:
    if isinstance(atom, Var):
        name = atom.name.split("@")[0]
        if not name.replace(".", "").replace("_", "").isalnum():
            raise Unrenderable(atom.name)
        return name
    if isinstance(atom, (Div, Mod)):
        operator = "//" if isinstance(atom, Div) else "%"
        return f"({_operand(atom.num)} {operator} {_operand(atom.den)})"
    return _opaque(atom)


def _operand(sym: Sym) -> str:
    text = render(sym)
    return text if len(sym.terms) == 1 and len(sym.terms[0][0]) + (sym.terms[0][1] != 1) <= 1 else f"({text})"


def _opaque(atom: Opaque) -> str:
    if atom.head.startswith("load "):
        return f"{atom.head[5:]}[{', '.join(render(arg) for arg in atom.args)}]"
    raise Unrenderable(atom.head)
