"""Bytes of one element, by dtype as TileLang spells it, and which of them a load fills."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ITEM_SIZE: Mapping[str, int] = MappingProxyType(
    {"float": 4, "float32": 4, "float16": 2, "bfloat16": 2}
    | {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
"""A dtype that is missing here has an unknown size: no finding depends on it."""

FILLED = frozenset({2, 4})
"""Sizes of the types that ``Duplicate`` has: a load of less than a tile fills the rest (common.h:40-45)."""
