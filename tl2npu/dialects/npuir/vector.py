"""Vector operators. The destination comes last; each has a short name and one with ``npuir_``.

A ``[M, 1]`` operand is spread over a ``[M, N]`` one, and equal ranks are asked for. The second operand of a binary
operator may be a Python number, a variable or an element; the first one is a tile.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[tile vector each] tilelang/language/customize_npuir.py
vadd npuir_add: <A ?B >C = A + B
vsub npuir_sub: <A ?B >C = A - B
vmul npuir_mul: <A ?B >C = A * B
vdiv npuir_div: <A ?B >C = A / B
vmax npuir_max: <A ?B >C = max(A, B)
vmin npuir_min: <A ?B >C = min(A, B)
vor npuir_or: <A ?B >C = A | B
vand npuir_and: <A ?B >C = A & B
vxor npuir_xor: <A ?B >C = A ^ B
vpow npuir_pow: <A ?B >C = pow(A, B)
vshl npuir_shl: <A ?B >C = A << B
vshr npuir_shr: <A ?B >C round=True = A >> B # B is a tile or a constant of the language
vexp npuir_exp: <A >B = exp(A)
vln npuir_ln: <A >B = log(A)
vrelu npuir_relu: <A >B = max(A, 0.0)
vsigmoid npuir_sigmoid: <A >B = sigmoid(A)
vsqrt npuir_sqrt: <A >B = sqrt(A)
vrsqrt npuir_rsqrt: <A >B = rsqrt(A)
vabs npuir_abs: <A >B = abs(A)
vrec npuir_rec: <A >B = 1.0 / A
vnot npuir_not: <A >B = ~A
vexp2 npuir_exp2: <A >B ~Tmp = exp2(A) # exp(A * ln 2); Tmp is a tile like A
vlog2 npuir_log2: <A >B ~Tmp = log2(A) # ln(A) / ln 2; Tmp is a tile like A
vcos npuir_vcos: <src >dst * size=None = cos(src) ~ a series of four terms, correct for arguments in [-1, 1] only
vsin npuir_vsin: <src >dst * size=None = sin(src) ~ a series of four terms, correct for arguments in [-1, 1] only
verf npuir_verf: <src >dst * size=None = erf(src) ~ a series of four terms, correct for arguments in [-1, 1] only
vtanh npuir_vtanh: <src >dst * size=None = tanh(src) ~ a quotient of exponentials, NaN where they overflow
vcast npuir_cast: <src >dst size=None round_mode='rint' # round, rint, floor, ceil, trunc or odd
vbitcast npuir_bitcast: ~src dtype size=None # reinterprets src itself
vselect npuir_select: <Cond ?A ?B >Out = select(Cond, A, B) # Cond is a tile of bool
vcmp npuir_cmp: <A ?B >C cmp_mod # eq, ne, lt, gt, ge or le; C is a tile of bool
vclamp npuir_clamp: <src >dst ?min_val ?max_val = min(max(src, min_val), max_val)
""")
"""Their meanings; where there is a deviation the compiler computes something else (``codegen_npuir_dev.cc``)."""
