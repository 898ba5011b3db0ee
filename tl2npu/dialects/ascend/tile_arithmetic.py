"""``T.tile`` operators that compute every element by itself: arithmetic, functions, shifts, clamps.

Sizes: the element count is the product of the extents of the destination (binary, unary) or of the source (scalar
forms, compare); operands must have equal sizes. Operators with a ``count`` parameter process just so many elements.
A whole-index buffer element as ``src1`` (``s[h]``) is read as a scalar by its *first* index only, so ``s[h, 0]`` of a
2-D buffer reads the wrong element (facts 2, g2_scalar).
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[tile vector each] tilelang/language/ascend_tile.py
tile.add: >dst <src0 ?src1 = src0 + src1
tile.sub: >dst <src0 ?src1 = src0 - src1
tile.mul: >dst <src0 ?src1 = src0 * src1
tile.div: >dst <src0 ?src1 = src0 / src1
tile.max: >dst <src0 ?src1 = max(src0, src1)
tile.min: >dst <src0 ?src1 = min(src0, src1)
tile.bitwise_and: >dst <src0 ?src1 = src0 & src1 # src1 as a scalar names an operator that is not registered
tile.bitwise_or: >dst <src0 ?src1 = src0 | src1 # src1 as a scalar names an operator that is not registered
tile.bitwise_xor: >dst <src0 <src1 = src0 ^ src1 # no count: works on the allocated sizes
tile.pow: >dst <src0 <src1 = pow(src0, src1) # no count: works on the allocated sizes
tile.exp: >dst <src0 = exp(src0)
tile.ln: >dst <src0 = log(src0)
tile.abs: >dst <src0 = abs(src0)
tile.reciprocal: >dst <src0 = 1.0 / src0
tile.sqrt: >dst <src0 = sqrt(src0)
tile.rsqrt: >dst <src0 = rsqrt(src0)
tile.relu: >dst <src0 = max(src0, 0.0)
tile.bitwise_not: >dst <src0 = ~src0
tile.sigmoid: >dst <src = sigmoid(src)
tile.silu: >dst <src = src * sigmoid(src)
tile.sin: >dst <src = sin(src)
tile.cos: >dst <src = cos(src)
tile.leaky_relu: >dst <src0 scalar_value = select(src0 >= 0, src0, src0 * scalar_value)
tile.axpy: +dst[w] <src0 scalar_value = dst + src0 * scalar_value
tile.mul_add_dst: +dst <src0 <src1 = dst + src0 * src1
tile.bitwise_lshift: >dst <src0 scalarValue = src0 << scalarValue
tile.bitwise_rshift: >dst <src0 scalarValue = src0 >> scalarValue
tile.clamp_max: >out <buffer scalar_value count = min(buffer, scalar_value)
tile.clamp_min: >out <buffer scalar_value count = max(buffer, scalar_value)
tile.clamp: >out <buffer min_scalar max_scalar count = min(max(buffer, min_scalar), max_scalar)
tile.round: >out <buffer count = round(buffer)
[tile vector each] tilelang/language/ascend_tile.py # what the others are made of; taken for whole-size because the
    operator is a string
tile.binary_op: >dst <src0 ?src1 op
tile.unary_op: >dst <src0 op
tile.scalar_op: >dst <src0 scalar_value op_tl
""")
