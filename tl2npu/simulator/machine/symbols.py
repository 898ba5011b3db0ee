"""Symbolic extents: which there are, and their values for given arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.evaluate import number
from tl2npu.simulator.ir.expr import Expr, Var
from tl2npu.simulator.ir.parts import free, substitute


def symbols_of(params: list[Buffer | Var]) -> list[Var]:
    """The symbolic extents in the shapes of parameters, and scalar parameters, in order."""
    found: dict[Var, None] = {}
    for param in params:
        if isinstance(param, Var):
            found.setdefault(param)
        else:
            for dim in (*param.shape, *(param.strides or ())):
                for var in free(dim):
                    found.setdefault(var)
    return list(found)


def solve(params: list[Buffer | Var], arrays: Mapping[int, np.ndarray], known: dict[Var, Any]) -> dict[Var, Any]:
    """Values of the symbols from the shapes and strides of given arrays (by buffer number).

    Raises SimulatorError where a shape does not fit what the kernel declares.
    """
    values, shapes = dict(known), {number: array.shape for number, array in arrays.items()}
    for param in params:
        if isinstance(param, Buffer) and param.number in shapes:
            shape = shapes[param.number]
            if len(shape) != len(param.shape):
                raise SimulatorError(f"{param.name} has {len(param.shape)} axes, but the array has shape {list(shape)}")
            for dim, size in zip(param.shape, shape, strict=True):
                if isinstance(dim, Var):
                    values.setdefault(dim, size)
            array = arrays[param.number]
            for dim, stride in zip(param.strides or (), array.strides, strict=False):
                if isinstance(dim, Var):
                    values.setdefault(dim, stride // array.itemsize)
    for param in params:
        if isinstance(param, Buffer) and param.number in shapes:
            for dim, size in zip(param.shape, shapes[param.number], strict=True):
                values |= _of_sum(dim, size, values)
    for param in params:
        if isinstance(param, Buffer) and param.number in shapes:
            expected = extents(param, values)
            if expected is not None and expected != shapes[param.number]:
                raise SimulatorError(
                    f"{param.name} is declared with shape {list(expected)}, but the array has shape "
                    f"{list(shapes[param.number])}"
                )
    return values


def _of_sum(dim: Any, size: int, values: dict[Var, Any]) -> dict[Var, int]:
    """The symbol of an extent like ``batch + 1``, if it is the only unknown one and nothing else tells it."""
    left = substitute(dim, values) if isinstance(dim, Expr) else dim
    unknown = free(left)
    if len(unknown) != 1 or isinstance(dim, Var):
        return {}
    (symbol,) = unknown
    first, second = (number(substitute(left, {symbol: value})) for value in (0, 1))
    step = second - first
    if not step or (size - first) % step:
        return {}
    found = (size - first) // step
    return {symbol: found} if number(substitute(left, {symbol: found})) == size else {}


def extents(buffer: Buffer, values: dict[Var, Any]) -> tuple[int, ...] | None:
    """The shape of a buffer; None where a symbol is not known."""
    result = []
    for dim in buffer.shape:
        value = substitute(dim, values) if isinstance(dim, Expr) else dim
        if free(value):
            return None
        result.append(number(value))
    return tuple(result)
