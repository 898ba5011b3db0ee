"""How an Ascend kernel takes the tensors of its caller: as addresses.

The host code checks element types and that a tensor is dense, nothing else (cython_wrapper.pyx of tilelang-ascend; its
check of the shapes is commented out), so that a kernel may be given ``[M, 1]`` for ``[M]``. Symbolic extents come from
the first tensor that has one, by axis. Arguments behind the last one that is needed are not looked at.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.machine.symbols import extents

_said: set[str] = set()


def declared(
    kernel: str, params: list[Buffer], arrays: dict[int, np.ndarray], scalars: dict[Var, Any]
) -> dict[int, np.ndarray]:
    """The arrays with the shapes that the kernel declares, their memory shared.

    Raises ValueError for one that is not dense, as the host code does, and SimulatorError for one that has fewer
    elements than the kernel declares. Says once on standard error where shapes differ.
    """
    values = dict(scalars)
    for param in params:
        given = arrays[param.number].shape
        for axis, dim in enumerate(param.shape):
            if isinstance(dim, Var) and dim not in values and axis < len(given):
                values[dim] = given[axis]
    result = {}
    for param in params:
        array = result[param.number] = arrays[param.number]
        if not array.flags.c_contiguous:
            raise ValueError(f"the tensor for {param.name} of {kernel} must be contiguous")
        shape = extents(param, values)
        if shape is None or shape == array.shape or param.strides is not None:
            continue
        size = int(np.prod(shape))
        if size > array.size:
            raise SimulatorError(
                f"{param.name} of {kernel} is declared with shape {list(shape)}, but the tensor has shape "
                f"{list(array.shape)}: the kernel would read or write behind its end"
            )
        say(
            f"note: {param.name} of {kernel} is declared with shape {list(shape)}, the tensor has shape "
            f"{list(array.shape)}: taken as memory, as the NPU takes it"
        )
        result[param.number] = array.reshape(-1)[:size].reshape(shape)
    return result


def say(text: str) -> None:
    """Prints a line on standard error, once."""
    if text not in _said:
        _said.add(text)
        print(text, file=sys.stderr)
