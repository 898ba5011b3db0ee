"""Vector operators. The destination comes last; each has a short name and one with ``npuir_``.

A ``[M, 1]`` operand is spread over a ``[M, N]`` one, and equal ranks are asked for. The second operand of a binary
operator may be a Python number, a variable or an element; the first one is a tile.
"""

from __future__ import annotations

from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.npuir.build import rows

BINARY = ("add", "sub", "mul", "div", "max", "min", "or", "and", "xor", "pow", "shl")

OPERATORS = (
    *rows(
        Kind.TILE,
        "\n".join(f"v{name} npuir_{name}: <A ?B >C" for name in BINARY),
        elementwise=True,
    ),
    *rows(
        Kind.TILE,
        """
vshr npuir_shr: <A ?B >C round=True # B is a tile or a constant of the language
vexp npuir_exp: <A >B
vln npuir_ln: <A >B
vrelu npuir_relu: <A >B
vsigmoid npuir_sigmoid: <A >B
vsqrt npuir_sqrt: <A >B
vrsqrt npuir_rsqrt: <A >B
vabs npuir_abs: <A >B
vrec npuir_rec: <A >B
vnot npuir_not: <A >B
vexp2 npuir_exp2: <A >B ~Tmp # exp(A * ln 2); Tmp is a tile like A
vlog2 npuir_log2: <A >B ~Tmp # ln(A) / ln 2; Tmp is a tile like A
vcos npuir_vcos: <src >dst * size=None
vsin npuir_vsin: <src >dst * size=None
verf npuir_verf: <src >dst * size=None
vtanh npuir_vtanh: <src >dst * size=None
vcast npuir_cast: <src >dst size=None round_mode='rint' # round, rint, floor, ceil, trunc or odd
vbitcast npuir_bitcast: ~src dtype size=None # reinterprets src itself
vselect npuir_select: <Cond ?A ?B >Out # Cond is a tile of bool
vcmp npuir_cmp: <A ?B >C cmp_mod # eq, ne, lt, gt, ge or le; C is a tile of bool
vclamp npuir_clamp: <src >dst ?min_val ?max_val
""",
        elementwise=True,
    ),
)
