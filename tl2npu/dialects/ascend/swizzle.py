"""The re-ordered block index, which keeps neighbouring blocks in the L2 cache."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import flag, operator, scalar
from tl2npu.dialects.catalogue import Core, Kind

_INIT = "tilelang/language/__init__.py"

OPERATORS = tuple(
    operator(
        name,
        Kind.SCALAR,
        scalar("cid"),
        scalar("m"),
        scalar("n"),
        scalar("k"),
        scalar("block_m"),
        scalar("block_n"),
        scalar("off", "1"),
        scalar("dir", "0"),
        flag("in_loop", "False"),
        core=Core.NONE,
        defined=f"{_INIT}:{name}",
        note="an int32 expression: the re-ordered block index",
    )
    for name in ("use_swizzle", "npu_use_swizzle")
)
