"""Floats as float64, each result of an operation a little off: how far a result moves says how large its terms were.

Rounding is an error of that kind, so a result may be wrong by as much as it moves (Monte Carlo arithmetic; Parker,
1997). A sum of large terms that cancel moves by as much as they are large; a small number that is made of small ones
does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.dialects.functions import OF_FLOATS
from tl2npu.simulator.arithmetic.precise import Array
from tl2npu.simulator.arithmetic.widened import Widened
from tl2npu.simulator.ir import dtypes

STEP = 2.0**-24
"""How far a result is off, relative to it; of normal distribution."""


class Jittered(Widened):
    """See the module."""

    name = "jittered"

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        for name in ("add", "sub", "mul", "div", "multiply_add", "pow", "reciprocal", *OF_FLOATS):
            setattr(self, name, self._off(getattr(Widened, name)))

    def _off(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *operands: self._moved(function(*operands))

    def _moved(self, x: Array) -> Array:
        found = np.asarray(x)
        if found.dtype != np.float64:
            return x
        return (found * (1.0 + STEP * self._random.standard_normal(found.shape)))[()]

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:  # type: ignore[override]
        """The sum of terms that are off."""
        return Widened.sum(self._moved(x), axis)

    def cumsum(self, x: Array, axis: int) -> Array:  # type: ignore[override]
        """Running sums of them."""
        return Widened.cumsum(self._moved(x), axis)

    def accumulate(self, total: np.ndarray, value: np.ndarray) -> None:  # type: ignore[override]
        """``total += value``, of which both are off."""
        total[...] = self._moved(total)
        Widened.accumulate(total, self._moved(value))

    def matmul(self, x: Array, y: Array, dtype: str) -> Array:  # type: ignore[override]
        """The product of two matrices, of which one is off."""
        return Widened.matmul(self._moved(x) if dtypes.is_float(dtype) else x, y, dtype)
