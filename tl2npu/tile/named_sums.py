"""Sums that a kernel has a name for, by that name: places in memory are split into their terms, which loses it."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.kernel.symbolic import Atom, Sym, Var, const, var
from tl2npu.tile.expr import Index
from tl2npu.tile.integers import in_body
from tl2npu.tile.ir import Kernel, Let, Stmt, with_bodies


def with_named_sums(kernel: Kernel) -> Kernel:
    """The kernel with the names of sums in the place of their terms, where that makes an integer shorter."""
    return replace(kernel, body=_named(kernel.body))


def _named(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    found = list(body)
    for number, stmt in enumerate(found):
        if isinstance(stmt, Let) and isinstance(stmt.value, Index) and (atom := _own(stmt.value.value)) is not None:
            name, value = stmt.name, stmt.value.value

            def change(integer: Sym, name: str = name, value: Sym = value, atom: Atom = atom) -> Sym:
                return _shorter(integer, name, value, atom)

            found[number + 1 :] = in_body(tuple(found[number + 1 :]), change)
    return tuple(with_bodies(stmt, _named) for stmt in found)


def _own(value: Sym) -> Atom | None:
    """A quotient, remainder or the like that is a term of the sum by itself; None if it is no such sum."""
    single = (mono[0] for mono, coef in value.terms if len(mono) == 1 and coef == 1)
    return next((atom for atom in single if not isinstance(atom, Var)), None) if len(value.terms) > 1 else None


def _shorter(integer: Sym, name: str, value: Sym, atom: Atom) -> Sym:
    factor = const(0)
    for mono, coef in integer.terms:
        if mono.count(atom) == 1:
            left = list(mono)
            left.remove(atom)
            factor = factor + Sym.of({tuple(left): coef})
    found = integer + factor * (var(name) - value)
    return found if len(found.terms) < len(integer.terms) else integer
