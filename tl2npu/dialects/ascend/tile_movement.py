"""``T.tile`` operators that convert, select, fill, broadcast, or add to global memory."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import (
    BOTH_MODES,
    EXPERT_ONLY,
    count,
    flag,
    mode,
    operator,
    read,
    scalar,
    scratch,
    write,
)
from tl2npu.dialects.ascend.tile_arithmetic import FILE
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param, Role


def _row_expand(name: str, sign: str, modes: frozenset[str] = EXPERT_ONLY) -> Operator:
    return operator(
        f"tile.{name}",
        Kind.TILE,
        write("dst"),
        read("src0"),
        read("src1"),
        scratch("tmp", "None"),
        core=Core.VECTOR,
        modes=modes,
        row_independent=True,
        defined=f"{FILE}:{name}",
        note=f"dst[i, j] = src0[i, j] {sign} src1[i]; src1 is [R], [1, R] or [R, 1]",
    )


OPERATORS = (
    operator(
        "tile.fill",
        Kind.FILL,
        write("buffer"),
        scalar("value"),
        core=Core.VECTOR,
        elementwise=True,
        defined=f"{FILE}:fill",
    ),
    operator("tile.clear", Kind.FILL, write("buffer"), core=Core.VECTOR, elementwise=True, defined=f"{FILE}:clear"),
    operator(
        "tile.cast",
        Kind.TILE,
        write("dst"),
        read("src"),
        mode("mode"),
        count("count"),
        core=Core.VECTOR,
        elementwise=True,
        defined=f"{FILE}:cast",
        note="CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC or CAST_ODD",
    ),
    operator(
        "tile.compare",
        Kind.TILE,
        write("dst"),
        read("src0"),
        read("src1", scalar=True),
        mode("mode"),
        core=Core.VECTOR,
        elementwise=True,
        defined=f"{FILE}:compare",
        note="writes a mask of one bit per element of src0; EQ, NE, GT, GE, LT or LE; "
        "count * itemsize must be a multiple of 256 bytes; an integer literal as src1 is not accepted",
    ),
    operator(
        "tile.select",
        Kind.TILE,
        write("dst", seen="r"),
        read("selMask"),
        read("src0"),
        read("src1", scalar=True),
        mode("selMode"),
        core=Core.VECTOR,
        elementwise=True,
        defined=f"{FILE}:select",
        note="VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE or VSEL_TENSOR_TENSOR_MODE; "
        "an integer literal as src1 is not accepted",
    ),
    operator(
        "tile.broadcast",
        Kind.TILE,
        write("dst"),
        read("src"),
        flag("axis", "None"),
        core=Core.VECTOR,
        row_independent=True,
        axis="axis",
        defined=f"{FILE}:broadcast",
        note="axis 1: [M, 1] or [M] along the rows; axis 0: [1, N] or [N] to all rows; None: the axis of extent 1, "
        "for a 1-D src the columns are tried first",
    ),
    _row_expand("row_expand_mul", "*", BOTH_MODES),
    _row_expand("row_expand_mul_experiment", "*"),
    _row_expand("row_expand_sub_experiment", "-"),
    _row_expand("row_expand_div_experiment", "/"),
    operator(
        "tile.atomic_add",
        Kind.ATOMIC,
        Param("dst", Role.ACCUMULATE, seen="w"),
        read("src"),
        core=Core.BY_OPERANDS,
        elementwise=True,
        defined=f"{FILE}:atomic_add",
        note="dst in global memory; src in UB (vector core) or L0C (cube core)",
    ),
)
