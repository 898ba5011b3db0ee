"""A kernel that was read for the cores of A5 as a plain kernel of the tile IR."""

from __future__ import annotations

from dataclasses import replace

from tl2npu.kernel.symbolic import Sym, const, var
from tl2npu.tile.integers import in_kernel
from tl2npu.tile.ir import Kernel
from tl2npu.triton.a5.forward import forwarded
from tl2npu.triton.a5.halves import whole
from tl2npu.triton.a5.order import merged
from tl2npu.triton.a5.sizes import shown, spelled
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
    kernel = replace(kernel, body=tuple(merged(kernel.body, chips, tensors, lambda value: shown(value, spec))))
    before = kernel
    kernel = whole(kernel, half)
    if undivided is not None and kernel.body != before.body:
        raise Refused("TL567", undivided, "one vector core gets the whole product, and the other works on a half of it")
    kernel = forwarded(kernel, chips | own)
    return _with_sizes(kernel, spec)


def _with_sizes(kernel: Kernel, spec: Spec) -> Kernel:
    """With the author's sizes in the place of the parts that they are multiples of, which the host checks."""
    if not spec.multiples:
        return kernel

    def change(value: Sym) -> Sym:
        return spelled(value, spec)

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
