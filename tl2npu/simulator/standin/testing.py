"""``tilelang.testing``: runs the tests of a file."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np


def main() -> None:
    """Runs the tests of the calling file with pytest, and exits as pytest does."""
    import pytest

    file = sys._getframe(1).f_code.co_filename
    sys.exit(pytest.main([file, "-p", "no:cacheprovider", *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seeds Python, NumPy and torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def torch_assert_close(
    actual: Any,
    expected: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    **_: Any,
) -> bool:
    """Close but for a share of the elements. Raises AssertionError with the count and the largest difference."""
    import torch

    actual, expected = actual.to(torch.float64), expected.to(torch.float64)
    if actual.shape != expected.shape:
        raise AssertionError(f"shapes {tuple(actual.shape)} and {tuple(expected.shape)} differ")
    wrong = ~torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count = int(wrong.sum())
    if count > max_mismatched_ratio * wrong.numel():
        worst = float((actual - expected).abs()[wrong].max())
        raise AssertionError(f"{count} of {wrong.numel()} elements differ, by up to {worst}")
    return True


def same(function: Any = None, *_: Any, **__: Any) -> Any:
    """Marks such as ``requires_cuda``: every test runs."""
    return function if callable(function) else same
