"""Arrays of element types that NumPy itself does not have, as the unsigned integers that hold their bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np


def bits(array: np.ndarray) -> np.ndarray:
    """The array, as unsigned integers of the same size if NumPy itself does not know its element type."""
    return array.view(f"u{array.dtype.itemsize}") if hasattr(ml_dtypes, array.dtype.name) else array


def of_bits(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array that :func:`bits` was given; ``dtype`` is the name of its element type."""
    kind = np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    return array if array.dtype == kind else array.view(kind)
