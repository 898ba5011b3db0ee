"""The arithmetic of the element types, but ``max`` and ``min`` give the number where one operand is NaN.

A GPU does so. What a vector core does no public source says; ``Precise`` gives NaN.
"""

from __future__ import annotations

import numpy as np

from tl2npu.simulator.arithmetic.precise import Array, Precise


class Numbers(Precise):
    """See the module."""

    name = "numbers"

    @staticmethod
    def maximum(x: Array, y: Array) -> Array:
        """The larger; the number if one is NaN."""
        return np.fmax(x, y)

    @staticmethod
    def minimum(x: Array, y: Array) -> Array:
        """The smaller; the number if one is NaN."""
        return np.fmin(x, y)

    @staticmethod
    def max(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The largest along an axis that is no NaN."""
        return np.fmax.reduce(x, axis=axis)

    @staticmethod
    def min(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The smallest along an axis that is no NaN."""
        return np.fmin.reduce(x, axis=axis)
