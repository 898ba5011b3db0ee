"""Matrix multiplication: ``C = C + A * B``, or ``A * B`` with ``initC``.

Operands may live anywhere. Types: float16, bfloat16 and float32 to float32, int8 to int32.
"""

from __future__ import annotations

from tl2npu.dialects.tables import table

OPERATORS = table("""
[gemm cube] tilelang/language/customize_npuir.py
gemm npuir_dot: <A <B +C size=None initC=False a_transpose=False b_transpose=False
    # size is [m, k, n]; initC may be an expression such as k == 0
""")
