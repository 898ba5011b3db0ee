"""The mode of GPU kernels, and the types of vectors, which are a product of two lists."""

from __future__ import annotations

from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.tables import table

GPU_MODE = frozenset({"gpu"})

LANES = (2, 4, 8, 16, 32, 64)

VECTOR_BASES = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bfloat16", "tfloat32"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
)


def vector_types() -> tuple[Operator, ...]:
    """``float16x2`` and its like."""
    names = " ".join(f"{base}x{lanes}" for base in VECTOR_BASES for lanes in LANES)
    return table(f"[type] tilelang/language/dtypes.py # vector\n{names}:", GPU_MODE)
