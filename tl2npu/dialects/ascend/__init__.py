"""The operators of Ascend TileLang, Expert and Developer mode: everything in the name space ``tilelang.language``.

Source: tile-ai/tilelang-ascend, branch ascendc_pto, 95acbd7f.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tl2npu.dialects.ascend import (
    annotation,
    debugging,
    expressions,
    gpu,
    launch,
    loops,
    matrix,
    memory,
    reduce,
    script,
    swizzle,
    sync,
    system,
    tile_arithmetic,
    tile_blocks,
    tile_movement,
    tile_order,
    transfer,
    types,
)
from tl2npu.dialects.catalogue import Operator

_FILES = (
    memory,
    transfer,
    matrix,
    tile_arithmetic,
    tile_movement,
    tile_order,
    tile_blocks,
    reduce,
    sync,
    loops,
    launch,
    annotation,
    debugging,
    swizzle,
    system,
    expressions,
    types,
    script,
    gpu,
)

OPERATORS: Mapping[str, Operator] = MappingProxyType({row.name: row for file in _FILES for row in file.OPERATORS})
"""All operators by their name relative to ``tilelang.language``."""
_PREFIX = "tilelang.language."


def lookup(canonical: str) -> Operator | None:
    """The operator of a canonical name, ``tilelang.language.tile.add``; None for any other name."""
    return OPERATORS.get(canonical.removeprefix(_PREFIX)) if canonical.startswith(_PREFIX) else None
