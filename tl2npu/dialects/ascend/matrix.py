"""Matrix multiplication on the cube core."""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[gemm cube] tilelang/language/ascend.py
gemm_v0: <A <B +C transpose_A=False transpose_B=False init=False kL0Size=128 # A and B in L1, C in L0C; init may be
    an expression such as k == 0; seen as a pure write only for True; kL0Size since 2026-07
[mma cube expert] tilelang/language/customize.py
mma@npu_gemm: <A <B +C init=False # A in L0A, B in L0B, C in L0C
[gemm cube nowhere] tilelang/language/gemm.py
gemm: <A <B +C transpose_A=False transpose_B=False policy=GemmWarpPolicy.Square clear_accum=False k_pack=1 wg_wait=0
    # rejected by the Ascend compiler: use gemm_v0
""")
