"""How far two tensors are apart: the figures that operator tests of Ascend report.

Element for element, in float64, where both are finite: ``|a - g|`` for the absolute error, ``|a - g| / (|g| + 1e-7)``
for the relative one, of which MERE is the mean and MARE the maximum (cann-bench, ``precision_comparison_design.md``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tl2npu.simulator.ir import dtypes
from tl2npu.verified import Metrics

EPSILON = 1e-7
"""Added to ``|g|`` where a relative error is formed."""


def metrics(name: str, golden: np.ndarray, actual: np.ndarray, matched: np.ndarray) -> Metrics:
    """The figures of a tensor. ``golden`` is what it is measured against; ``matched`` says which elements agree."""
    left, right = wide(golden), wide(actual)
    both = np.isfinite(left) & np.isfinite(right)
    with np.errstate(all="ignore"):
        apart = np.where(both, np.abs(right - left), 0.0)
        relative = apart / (np.abs(np.where(both, left, 1.0)) + EPSILON)
    worst = np.unravel_index(int(np.argmax(relative)), relative.shape) if relative.size else ()
    count = max(int(both.sum()), 1)
    return Metrics(
        name,
        golden.dtype.name,
        tuple(golden.shape),
        float(apart.max(initial=0.0)),
        float(relative.max(initial=0.0)),
        float(relative.sum() / count),
        float(np.sqrt(np.sum(np.square(apart)) / count)),
        cosine(left[both], right[both]),
        float(matched.mean()) if matched.size else 1.0,
        tuple(int(i) for i in worst),
        _within(relative, both, 1e-3),
        _within(relative, both, 5e-3),
        _statistics(left[both]),
        _statistics(right[both]),
    )


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    """The cosine of the angle between two tensors; 1 for two that are zero, 0 where one is."""
    lengths = float(np.linalg.norm(left)), float(np.linalg.norm(right))
    if not all(lengths):
        return 1.0 if lengths[0] == lengths[1] else 0.0
    with np.errstate(all="ignore"):
        return float(np.dot(left.ravel() / lengths[0], right.ravel() / lengths[1]))


def ulp(golden: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of the floats of a type around each value (float64)."""
    digits, least = _FORMATS[dtype]
    with np.errstate(all="ignore"):
        exponents = np.floor(np.log2(np.abs(golden)))
    exponents = np.where(np.isfinite(exponents), exponents, least)
    found: np.ndarray = np.exp2(np.maximum(exponents, least) - digits)
    return found


_FORMATS = {
    "float64": (52, -1022),
    "float32": (23, -126),
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float8_e4m3fn": (3, -6),
    "float8_e5m2": (2, -14),
}
"""Element type -> stored digits of the significand, and the least exponent of a normal number."""


def wide(array: np.ndarray) -> np.ndarray:
    """The same numbers as float64; NumPy warns of some NaN that memory holds by chance."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def _within(relative: np.ndarray, both: np.ndarray, bound: float) -> float:
    return float(((relative < bound) & both).mean()) if relative.size else 1.0


def _statistics(values: np.ndarray) -> tuple[float, float, float, float]:
    """Largest, smallest, mean and length of the finite values."""
    if not values.size:
        return (math.nan,) * 4
    return float(values.max()), float(values.min()), float(values.mean()), float(np.linalg.norm(values))


def is_float(array: Any) -> bool:
    """True for an array of floats of any width."""
    return dtypes.is_float(array.dtype.name)
