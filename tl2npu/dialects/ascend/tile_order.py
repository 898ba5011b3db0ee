"""``T.tile`` operators whose result at one place depends on other places, or on the place itself.

Sorts, gathers, index generators, transposition. None of them may be cut into halves.
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import count, mode, operator, read, scalar, write
from tl2npu.dialects.ascend.tile_arithmetic import FILE
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param


def _tile(name: str, *params: Param, note: str = "") -> Operator:
    return operator(f"tile.{name}", Kind.TILE, *params, core=Core.VECTOR, defined=f"{FILE}:{name}", note=note)


OPERATORS = (
    _tile(
        "arith_progression",
        write("buffer"),
        scalar("first_value"),
        scalar("diff_value"),
        count("count"),
        note="element i is first_value + i * diff_value of the flat buffer",
    ),
    _tile("createvecindex", write("dst"), scalar("firstValue"), note="element i is firstValue + i of the flat buffer"),
    _tile(
        "sort",
        write("dst"),
        read("src"),
        count("actual_num"),
        note="descending; dst holds (value, index) pairs, twice the size of src",
    ),
    _tile(
        "sort32",
        write("dst"),
        read("src0"),
        read("src1"),
        note="sorts blocks of 32 elements; src1 holds the indices",
    ),
    _tile(
        "merge_sort",
        write("dst"),
        read("src0"),
        read("src1"),
        read("src2", "None"),
        read("src3", "None"),
        note="2 to 4 sorted runs of (value, index) pairs",
    ),
    _tile(
        "topk",
        write("dst"),
        read("src"),
        scalar("K"),
        count("actual_num"),
        note="K (value, index) pairs; src must have a static shape",
    ),
    _tile("init_sort_buf", write("buffer"), count("num"), scalar("rsv")),
    _tile("gather", write("dst"), read("src"), read("src_offset"), scalar("src_base_addr")),
    _tile(
        "gather_mask",
        write("dst"),
        read("src"),
        read("src1Pattern", scalar=True),
        note="src1Pattern is a pattern name such as 'P0101' or a uint32 buffer; the result is packed",
    ),
    _tile(
        "gatherb",
        write("dst"),
        read("src0"),
        read("offset"),
        count("repeat_time"),
        scalar("dst_blk_stride"),
        scalar("dst_rep_stride"),
    ),
    _tile("transpose", write("dst"), read("src")),
    operator(
        "reinterpretcast",
        Kind.TILE,
        write("dst"),
        read("src"),
        mode("casttype"),
        core=Core.VECTOR,
        defined="tilelang/language/ascend.py:reinterpretcast",
        note="dst becomes a view of the bytes of src: later writes to one change the other",
    ),
)
