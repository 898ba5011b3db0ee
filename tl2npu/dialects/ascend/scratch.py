"""Operators with scratch memory, and the tile by whose allocation in the launch the compiler finds its size.

Of a tile that stands in front of the launch it finds none, and ends with SIGSEGV (``GetBufferNodeByName_`` of
``src/transform/allocate_tmp_buffer.cc`` at 95acbd7f). ``sort``, ``topk``, ``clamp_max`` and
``clamp_min`` were read, the others tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SIZED_BY_SOURCE = frozenset(
    "sin cos pow sigmoid bitwise_xor clamp clamp_max clamp_min sort topk reduce_sum reduce_max reduce_min".split()
)
SIZED_BY_TARGET: Mapping[str, frozenset[str]] = MappingProxyType(
    {"ascendc": frozenset({"broadcast"}), "pto": frozenset({"select"})}
)
"""By code generator; of ``pto`` also reductions that join what their result holds."""
