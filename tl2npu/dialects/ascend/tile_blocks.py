"""``T.tile`` operators on hardware blocks: masks, repeats and strides; deprecated and ``*_experiment`` ones.

They address the flat buffer by 256-byte repeats, so a changed tile size changes their meaning.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[tile vector expert] tilelang/language/ascend_tile.py # deprecated
tile.wholereducemax tile.wholereducemin: >dst <src mask repeattimes dstrepstride srcblkstride srcrepstride
    ReduceOrder='ORDER_VALUE_INDEX'
tile.wholereducesum: >dst <src mask repeattimes dstrepstride srcblkstride srcrepstride
tile.block_reduce_max tile.block_reduce_min tile.block_reduce_sum: >dst <src repeat mask dstPepStride srcBlkStride
    srcRepStride
[tile vector expert] tilelang/language/ascend_tile.py
tile.brcb: >dst <src repeat_times dst_blk_stride dst_repeat_stride # deprecated; the compiler has no code for it
tile.brcb_experiment: >dst <src repeat_times dst_blk_stride dst_repeat_stride # each source element fills one
    32-byte block
tile.bilinear_interpolation: >dst <src0 <src0_offset <src1 mask h_repeat repeat_mode dst_blk_stride v_r_offset
    v_repeat # deprecated
[tile vector expert each] tilelang/language/ascend_tile.py
tile.sub_experiment: >dst <src0 <src1 count
tile.abs_experiment: >dst <src count
tile.mins_experiment: >dst <src scalarValue count
[tile vector expert] tilelang/language/ascend_tile.py
tile.reduce_sum_experiment: >dst <src count # sum of all elements
tile.reduce_sum_mask_experiment: >dst <src mask repeatTime srcRepStride
tile.gathermask_experiment: >dst <src0 <src1Pattern reduceMode mask GatherMaskParams rsvdCnt # GatherMaskParams:
    src0 block stride, repeats, src0 repeat stride, src1 repeat stride
tile.fill_experiment: >dst value mask/shape repeatTimes dstBlockStride dstRepeatStride # only the first element of
    mask is used
tile.sum_experiment: >dst <src sumParams # sumParams: number of rows, padded row length, real row length
[system by-operands expert] tilelang/language/ascend_tile.py
tile.datacachecleanandinvalid_experiment: >dst CacheLine DcciDst # cleans and invalidates the data cache for dst
""")
