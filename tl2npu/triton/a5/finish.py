"""A kernel that was read for the cores of A5 as a plain kernel of the tile IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from tl2npu.kernel.symbolic import Div, Mod, Opaque, Sym, Var, const, opaque, var
from tl2npu.tile.integers import in_kernel
from tl2npu.tile.ir import Kernel
from tl2npu.triton.a5.forward import forwarded
from tl2npu.triton.a5.halves import whole
from tl2npu.triton.a5.order import merged
from tl2npu.triton.read.spec import Spec, Tensor
from tl2npu.triton.refused import Refused


def finish(
    kernel: Kernel, spec: Spec, half: str, chips: frozenset[str], own: frozenset[str], undivided: int | None
) -> Kernel:
    """One program for all cores, on whole tiles, without copies from core to core.

    ``half``: the variable for the number of the vector core; ``chips``: buffers of the author; ``own``: tiles that
    only hand something over; ``undivided``: the line of a fixpipe that gives a whole tile to one vector core. What
    the host must check is added to ``spec``. Raises ``Refused``.
    """
    tensors = frozenset(param.name for param in kernel.params)
    kernel = replace(kernel, body=tuple(merged(kernel.body, chips, tensors)))
    before = kernel
    kernel = whole(kernel, half)
    if undivided is not None and kernel.body != before.body:
        raise Refused("TL567", undivided, "one vector core gets the whole product, and the other works on a half of it")
    kernel = forwarded(kernel, chips | own)
    return _with_sizes(kernel, spec)


def _with_sizes(kernel: Kernel, spec: Spec) -> Kernel:
    """With the author's sizes in the place of the parts that they are multiples of, which the host checks."""
    parts = {spec.part(name, number): (name, number) for name, number in spec.multiples.items()}
    if not parts:
        return kernel

    def change(value: Sym) -> Sym:
        return _spelled(value, parts)

    kernel = in_kernel(kernel, change)
    spec.grid = tuple(change(extent) for extent in spec.grid)
    spec.equal = [(change(one), change(other)) for one, other in spec.equal]
    spec.divides = [(change(one), change(other)) for one, other in spec.divides]
    spec.divides += [(var(name), const(number)) for name, number in spec.multiples.items() if number > 1]
    spec.views = {name: tuple(map(change, view)) for name, view in spec.views.items()}
    for name, tensor in spec.tensors.items():
        if tensor.shape is not None:
            spec.tensors[name] = Tensor(tuple(map(change, tensor.shape)), tensor.dtype)
    return kernel


def _spelled(value: Sym, parts: Mapping[str, tuple[str, int]]) -> Sym:
    """``32 * part`` as the size that it is, ``16 * part`` as half of it."""
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
