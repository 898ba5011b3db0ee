"""``T.tile`` operators that convert, select, fill, broadcast, or add to global memory."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[fill vector each] tilelang/language/ascend_tile.py
tile.fill: >buffer value
tile.clear: >buffer
[tile vector each] tilelang/language/ascend_tile.py
tile.cast: >dst <src mode count # CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC or CAST_ODD
tile.compare: >dst <src0 ?src1 mode # writes a mask of one bit per element of src0; EQ, NE, GT, GE, LT or LE; count
    * itemsize must be a multiple of 256 bytes; an integer literal as src1 is not accepted
tile.select: >dst[r] <selMask <src0 ?src1 selMode # VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE or
    VSEL_TENSOR_TENSOR_MODE; an integer literal as src1 is not accepted
[tile vector row axis=axis] tilelang/language/ascend_tile.py
tile.broadcast: >dst <src axis=None # axis 1: [M, 1] or [M] along the rows; axis 0: [1, N] or [N] to all rows; None:
    the axis of extent 1, for a 1-D src the columns are tried first
[tile vector row] tilelang/language/ascend_tile.py
tile.row_expand_mul: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] * src1[i]; src1 is [R], [1, R] or [R, 1]
[tile vector expert row] tilelang/language/ascend_tile.py
tile.row_expand_mul_experiment: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] * src1[i]; src1 is [R], [1, R]
    or [R, 1]
tile.row_expand_sub_experiment: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] - src1[i]; src1 is [R], [1, R]
    or [R, 1]
tile.row_expand_div_experiment: >dst <src0 <src1 ~tmp=None # dst[i, j] = src0[i, j] / src1[i]; src1 is [R], [1, R]
    or [R, 1]
[atomic by-operands each] tilelang/language/ascend_tile.py
tile.atomic_add: +dst[w] <src # dst in global memory; src in UB (vector core) or L0C (cube core)
""")
