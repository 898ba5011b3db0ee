"""How an Ascend kernel takes the tensors of its caller: as addresses.

The host code checks element types and that a tensor is dense, nothing else (cython_wrapper.pyx of tilelang-ascend; its
check of the shapes is commented out), so that a kernel may be given ``[M, 1]`` for ``[M]``. Symbolic extents come from
the first tensor that has one, by axis. Arguments behind the last one that is needed are not looked at.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.machine.symbols import extents

_said: set[str] = set()
_MOST = 4 << 30
"""Bytes of a tensor that is longer than the caller's."""


@dataclass(frozen=True)
class Longer:
    """A tensor that a kernel declares with more elements than the caller's has: what lies behind its end is unwritten.

    ``text`` names it; ``array`` is the caller's, ``whole`` what the kernel sees.
    """

    text: str
    array: np.ndarray
    whole: np.ndarray

    def give_back(self, poison: Any) -> None:
        """The caller's elements after the call. Raises SimulatorError if something behind them was written."""
        flat = self.whole.reshape(-1)
        self.array.reshape(-1)[...] = flat[: self.array.size]
        behind = np.full(flat.size - self.array.size, poison, flat.dtype)
        if flat[self.array.size :].tobytes() != behind.tobytes():
            raise SimulatorError(f"{self.text}: the kernel writes behind its end")


def declared(
    kernel: str,
    params: list[Buffer],
    arrays: dict[int, np.ndarray],
    scalars: dict[Var, Any],
    poison: Callable[[str], Any],
) -> tuple[dict[int, np.ndarray], dict[int, tuple[Longer, Any]]]:
    """The arrays with the shapes that the kernel declares, their memory shared; and those that are longer than the
    caller's tensor, whose memory is not, with the poison behind their end.

    Raises ValueError for one that is not dense, as the host code does. Says once on standard error where shapes differ.
    """
    longer: dict[int, tuple[Longer, Any]] = {}
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
        size = math.prod(shape)
        text = (
            f"{param.name} of {kernel} is declared with shape {list(shape)}, the tensor has shape {list(array.shape)}"
        )
        say(f"note: {text}: taken as memory, as the NPU takes it")
        if size <= array.size:
            result[param.number] = array.reshape(-1)[:size].reshape(shape)
            continue
        if size * array.itemsize > _MOST:
            raise SimulatorError(f"{text}: the simulator would need {size * array.itemsize >> 30} GiB for it")
        whole = np.full(size, poison(param.dtype), array.dtype)
        whole[: array.size] = array.reshape(-1)
        result[param.number] = whole.reshape(shape)
        longer[param.number] = (Longer(text, array, result[param.number]), poison(param.dtype))
    return result, longer


def say(text: str) -> None:
    """Prints a line on standard error, once."""
    if text not in _said:
        _said.add(text)
        print(text, file=sys.stderr)
