"""``T.tile`` operators whose result at one place depends on other places, or on the place itself.

Sorts, gathers, index generators, transposition. None of them may be cut into halves.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[tile vector] tilelang/language/ascend_tile.py
tile.arith_progression: >buffer first_value diff_value count # element i is first_value + i * diff_value of the flat
    buffer
tile.createvecindex: >dst firstValue # element i is firstValue + i of the flat buffer
tile.sort: >dst <src actual_num # descending; dst holds (value, index) pairs, twice the size of src
tile.sort32: >dst <src0 <src1 # sorts blocks of 32 elements; src1 holds the indices
tile.merge_sort: >dst <src0 <src1 <src2=None <src3=None # 2 to 4 sorted runs of (value, index) pairs
tile.topk: >dst <src K actual_num # K (value, index) pairs; src must have a static shape
tile.init_sort_buf: >buffer num rsv
tile.gather: >dst <src <src_offset src_base_addr
tile.gather_mask: >dst <src ?src1Pattern # src1Pattern is a pattern name such as 'P0101' or a uint32 buffer; the
    result is packed
tile.gatherb: >dst <src0 <offset repeat_time dst_blk_stride dst_rep_stride
tile.transpose: >dst <src
[tile vector] tilelang/language/ascend.py
reinterpretcast: >dst <src casttype # dst becomes a view of the bytes of src: later writes to one change the other
""")
