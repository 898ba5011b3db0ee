"""Constants into tiles."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.operators.registry import semantics


@semantics("tile.fill", writes="buffer")
def fill(A: Any, buffer: Any, value: Any) -> None:
    """``T.tile.fill(buffer, value)``."""
    buffer[...] = value if hasattr(value, "dtype") else A.literal(value, buffer)


@semantics("tile.clear", writes="buffer")
def clear(A: Any, buffer: Any) -> None:
    """Zeros."""
    buffer[...] = A.literal(0, buffer)
