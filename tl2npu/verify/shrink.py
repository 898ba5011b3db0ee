"""Smaller extents for kernels whose shapes no CPU can carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def shrunk(trace: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Not yet."""
    return arguments, "nothing was shrunk"
