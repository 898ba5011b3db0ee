"""The arithmetic of the element types, but ``max`` and ``min`` give the number where one operand is NaN.

A GPU does so. What a vector core does no public source says; ``Precise`` gives NaN.
"""

from __future__ import annotations

from tl2npu.simulator.arithmetic.precise import Array, Precise


class Numbers(Precise):
    """See the module."""

    name = "numbers"

    @staticmethod
    def maximum(x: Array, y: Array) -> Array:
        """The larger; the number if one is NaN."""
        return Precise.number_maximum(x, y)

    @staticmethod
    def minimum(x: Array, y: Array) -> Array:
        """The smaller; the number if one is NaN."""
        return Precise.number_minimum(x, y)

    max = staticmethod(Precise.number_max)
    min = staticmethod(Precise.number_min)
