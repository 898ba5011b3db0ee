"""The re-ordered block index, which keeps neighbouring blocks in the L2 cache."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[scalar] tilelang/language/__init__.py
use_swizzle npu_use_swizzle: cid m n k block_m block_n off=1 dir=0 in_loop=False # an int32 expression: the
    re-ordered block index
""")
