"""``T.tile`` operators on hardware blocks: masks, repeats and strides; deprecated and ``*_experiment`` ones.

They address the flat buffer by 256-byte repeats, so a changed tile size changes their meaning.
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import EXPERT_ONLY, count, flag, mode, operator, read, scalar, shape, write
from tl2npu.dialects.ascend.tile_arithmetic import FILE
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param


def _block(name: str, *params: Param, note: str = "", elementwise: bool = False) -> Operator:
    return operator(
        f"tile.{name}",
        Kind.TILE,
        *params,
        core=Core.VECTOR,
        modes=EXPERT_ONLY,
        elementwise=elementwise,
        defined=f"{FILE}:{name}",
        note=note,
    )


def _whole_reduce(name: str, *last: Param) -> Operator:
    strides = (scalar("dstrepstride"), scalar("srcblkstride"), scalar("srcrepstride"))
    return _block(
        name, write("dst"), read("src"), scalar("mask"), count("repeattimes"), *strides, *last, note="deprecated"
    )


def _block_reduce(name: str) -> Operator:
    strides = (scalar("dstPepStride"), scalar("srcBlkStride"), scalar("srcRepStride"))
    return _block(name, write("dst"), read("src"), count("repeat"), scalar("mask"), *strides, note="deprecated")


def _brcb(name: str, note: str) -> Operator:
    strides = (scalar("dst_blk_stride"), scalar("dst_repeat_stride"))
    return _block(name, write("dst"), read("src"), count("repeat_times"), *strides, note=note)


OPERATORS = (
    _whole_reduce("wholereducemax", mode("ReduceOrder", "'ORDER_VALUE_INDEX'")),
    _whole_reduce("wholereducemin", mode("ReduceOrder", "'ORDER_VALUE_INDEX'")),
    _whole_reduce("wholereducesum"),
    _block_reduce("block_reduce_max"),
    _block_reduce("block_reduce_min"),
    _block_reduce("block_reduce_sum"),
    _brcb("brcb", "deprecated; the compiler has no code for it"),
    _brcb("brcb_experiment", "each source element fills one 32-byte block"),
    _block(
        "bilinear_interpolation",
        write("dst"),
        read("src0"),
        read("src0_offset"),
        read("src1"),
        scalar("mask"),
        scalar("h_repeat"),
        flag("repeat_mode"),
        scalar("dst_blk_stride"),
        scalar("v_r_offset"),
        scalar("v_repeat"),
        note="deprecated",
    ),
    _block("sub_experiment", write("dst"), read("src0"), read("src1"), count("count"), elementwise=True),
    _block("abs_experiment", write("dst"), read("src"), count("count"), elementwise=True),
    _block("mins_experiment", write("dst"), read("src"), scalar("scalarValue"), count("count"), elementwise=True),
    _block("reduce_sum_experiment", write("dst"), read("src"), count("count"), note="sum of all elements"),
    _block(
        "reduce_sum_mask_experiment",
        write("dst"),
        read("src"),
        scalar("mask"),
        count("repeatTime"),
        scalar("srcRepStride"),
    ),
    _block(
        "gathermask_experiment",
        write("dst"),
        read("src0"),
        read("src1Pattern"),
        flag("reduceMode"),
        scalar("mask"),
        shape("GatherMaskParams"),
        scalar("rsvdCnt"),
        note="GatherMaskParams: src0 block stride, repeats, src0 repeat stride, src1 repeat stride",
    ),
    _block(
        "fill_experiment",
        write("dst"),
        scalar("value"),
        shape("mask"),
        count("repeatTimes"),
        scalar("dstBlockStride"),
        scalar("dstRepeatStride"),
        note="only the first element of mask is used",
    ),
    _block(
        "sum_experiment",
        write("dst"),
        read("src"),
        shape("sumParams"),
        note="sumParams: number of rows, padded row length, real row length",
    ),
    operator(
        "tile.datacachecleanandinvalid_experiment",
        Kind.SYSTEM,
        write("dst"),
        mode("CacheLine"),
        mode("DcciDst"),
        core=Core.BY_OPERANDS,
        modes=EXPERT_ONLY,
        defined=f"{FILE}:datacachecleanandinvalid_experiment",
        note="cleans and invalidates the data cache for dst",
    ),
)
