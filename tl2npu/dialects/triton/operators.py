"""The names of ``triton.language``, of ``tl.math`` and of libdevice.

Source: triton-lang/triton 3.8, ``python/triton/language``; libdevice names as ``tl.extra`` exports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tl2npu.dialects.functions import NAMES

ELEMENTWISE: Mapping[str, str] = MappingProxyType(
    {
        **{name: op for name, op in NAMES.items() if name != "round"},  # libdevice's goes away from zero
        "fma": "fma",
        "pow": "pow",
        "maximum": "max",
        "minimum": "min",
        "fmax": "max",
        "fmin": "min",
        "div_rn": "div",
        "fdiv": "div",
        "add": "add",
        "sub": "sub",
        "mul": "mul",
        "where": "select",
    }
)
"""Functions of elements: name -> operator of the tile IR."""

REDUCTIONS: Mapping[str, str] = MappingProxyType({"sum": "sum", "max": "max", "min": "min"})
"""Reductions of one axis: name -> kind of the tile IR."""

HINTS = frozenset({"multiple_of", "max_contiguous", "max_constancy", "assume", "debug_barrier", "static_assert"})
HINTS_WITHOUT_VALUE = frozenset(
    {"assume", "debug_barrier", "static_assert", "device_assert", "static_print", "device_print"}
)
"""Names that change no value; the first argument, if any, is the value."""

DTYPES: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in ("float16", "bfloat16", "float32", "float64")},
        **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
        "int1": "bool",
        "float8e4nv": "float8_e4m3",
        "float8e5": "float8_e5m2",
        "float8e4b15": "float8_e4m3",
    }
)
"""Element types: name -> the type's name in TileLang."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("cumsum", "cumprod", "associative_scan"), "TL531"),
        **dict.fromkeys(("sort", "topk", "histogram", "argmax", "argmin", "bitonic_merge"), "TL532"),
        **dict.fromkeys(
            ("rand", "randn", "randint", "randint4x", "rand4x", "randn4x", "philox", "philox_impl"), "TL533"
        ),
        **dict.fromkeys(("pair_uniform_to_normal", "uint_to_uniform_float"), "TL533"),
        **dict.fromkeys(("inline_asm_elementwise", "inline_ptx"), "TL534"),
        **dict.fromkeys(("atomic_cas", "atomic_xchg", "atomic_max", "atomic_min", "atomic_and", "atomic_or"), "TL535"),
        **dict.fromkeys(("atomic_xor",), "TL535"),
        **dict.fromkeys(("xor_sum", "reduce_or"), "TL536"),
        **dict.fromkeys(("reshape", "view", "ravel", "permute", "join", "split", "interleave", "cat", "flip"), "TL537"),
        "gather": "TL523",
        **dict.fromkeys(("dot_scaled",), "TL539"),
        "pointer_type": "TL512",
    }
)
"""Names without a counterpart: name -> code of the refusal."""

WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "swizzle2d": """
def swizzle2d(i, j, size_i, size_j, size_g):
    ij = i * size_j + j
    size_gj = size_g * size_j
    off_i = ij // size_gj * size_g
    size_g = tl.minimum(size_i - off_i, size_g)
    ij = ij % size_gj
    return off_i + ij % size_g, ij // size_g
""",
    }
)
"""Functions that Triton itself writes in Triton, with ``tl`` for ``triton.language``: name -> their text."""
