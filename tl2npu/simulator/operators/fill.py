"""Constants into tiles."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.operators.registry import semantics


@semantics("tile.fill", writes="buffer")
@semantics("fill", writes="buffer", gpu=True)
def fill(A: Any, buffer: Any, value: Any) -> None:
    """``T.tile.fill(buffer, value)``, and ``T.fill`` of a GPU tile."""
    buffer[...] = value if hasattr(value, "dtype") else A.literal(value, buffer)


@semantics("tile.clear", writes="buffer")
@semantics("clear", writes="buffer", gpu=True)
def clear(A: Any, buffer: Any) -> None:
    """Zeros."""
    buffer[...] = A.literal(0, buffer)
