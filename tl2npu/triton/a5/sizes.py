"""Sizes that are read as a number times a part of them, in the author's names again."""

from __future__ import annotations

from math import gcd

from tl2npu.kernel.symbolic import Div, Mod, Opaque, Sym, Var, const, opaque, var
from tl2npu.tile.write.integers import integer
from tl2npu.triton.read.spec import Spec


def spelled(value: Sym, spec: Spec) -> Sym:
    """``32 * part`` as the size that it is, ``16 * part`` as half of it."""
    parts = {spec.part(name, number): (name, number) for name, number in spec.multiples.items()}
    return _spelled(value, parts)


def shown(value: Sym, spec: Spec) -> str:
    """The text of a size for a message."""
    return integer(spelled(value, spec))


def _spelled(value: Sym, parts: dict[str, tuple[str, int]]) -> Sym:
    total = const(0)
    for mono, coef in value.terms:
        product = const(1)
        for atom in mono:
            match atom:
                case Var() if atom.name in parts:
                    name, number = parts[atom.name]
                    common = gcd(coef, number)
                    coef //= common
                    product = product * (var(name) // (number // common))
                case Div():
                    product = product * (_spelled(atom.num, parts) // _spelled(atom.den, parts))
                case Mod():
                    product = product * (_spelled(atom.num, parts) % _spelled(atom.den, parts))
                case Opaque() if atom.args:
                    product = product * opaque(atom.head, *(_spelled(arg, parts) for arg in atom.args))
                case _:
                    product = product * Sym.of({(atom,): 1})
        total = total + product * coef
    return total
