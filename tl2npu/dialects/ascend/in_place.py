"""Operators whose result must not lie on their operand, by code generator: they read the operand again at the end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WRONG_IN_PLACE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tile.silu": ("ascendc", "pto"), "tile.sigmoid": ("pto",)}
)
"""Measured on a 910B3 with CANN 8.5.2 (#1657, #1658)."""
