"""Element types that the vector instructions of A2 and A3 have: per operator, and per conversion.

Sources: the ``static_assert``s of AscendC (CANN asc-devkit, ``impl/basic_api/dav_c220/kernel_operator_vec_*_impl.h``,
``impl/adv_api/detail/reduce``) and its tables of supported types (``Cast.md``, ``Duplicate.md``, ``Broadcast.md``).
What ``T.copy`` asks of ``Cast`` is in tilelang-ascend, ``src/tl_templates/ascend/common.h:copy_ub_to_ub``. The vector
core of A5 has more types: nothing here says anything about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEVICES = ("A2", "A3")
"""The devices of the tables."""

SYNONYMS: Mapping[str, str] = MappingProxyType(
    {"float": "float32", "half": "float16", "int": "int32", "bf16": "bfloat16", "double": "float64"}
)
"""Other spellings of element types."""
_KNOWN = frozenset("float16 float32 float64 bfloat16 bool".split()) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def known(dtype: str) -> str:
    """The one name of an element type that the tables speak of; empty for others and for names of parameters."""
    found = SYNONYMS.get(dtype, dtype)
    return found if found in _KNOWN else ""


_FLOATS = frozenset({"float16", "float32"})
_ARITHMETIC = _FLOATS | {"int16", "int32"}
_BITS = frozenset({"int16", "uint16"})
_MOVED = _ARITHMETIC | {"bfloat16", "uint16", "uint32"}

_ROWS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("add sub mul max min", "dst", _ARITHMETIC),
    ("div exp ln abs reciprocal sqrt rsqrt sigmoid silu sin cos leaky_relu mul_add_dst", "dst", _FLOATS),
    ("clamp clamp_max clamp_min round", "out", _FLOATS),
    ("axpy", "src0", _FLOATS),
    ("relu pow", "dst", _FLOATS | {"int32"}),
    ("bitwise_and bitwise_or bitwise_not bitwise_xor", "dst", _BITS),
    ("bitwise_lshift bitwise_rshift", "dst", _BITS | {"int32", "uint32"}),
    ("compare", "src0", _FLOATS),
    ("select", "dst", _FLOATS),
    ("fill clear", "buffer", _MOVED),
    ("createvecindex", "dst", _ARITHMETIC),
    ("arith_progression", "buffer", _ARITHMETIC),
    ("broadcast", "dst", _FLOATS | {"int8", "uint8"}),
    ("gather", "dst", _MOVED),
    ("merge_sort", "dst", frozenset({"float32"})),
    ("sort topk", "src", _FLOATS),
    ("gather_mask", "src1Pattern", frozenset({"uint32"})),
)

OPERATORS: Mapping[str, tuple[str, frozenset[str]]] = MappingProxyType(
    {
        **{f"tile.{name}": (operand, types) for names, operand, types in _ROWS for name in names.split()},
        **dict.fromkeys(("reduce_max", "reduce_min", "reduce_sum"), ("buffer", _FLOATS)),
    }
)
"""Operator -> the operand that decides, and the element types that it may have.

``And``, ``Or`` of 32-bit integers compile, and take the tile for half as many 16-bit integers: they are missing here.
"""


_SAME = """add sub mul max min div exp ln abs reciprocal sqrt rsqrt sigmoid silu relu leaky_relu axpy
bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_lshift bitwise_rshift"""
ALIKE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((f"tile.{name}" for name in _SAME.split()), ""),
        "tile.compare": "dst",
        "tile.select": "selMask",
        **dict.fromkeys(("reduce_max", "reduce_min", "reduce_sum", "tile.atomic_add"), ""),
    }
)
"""Operators whose tiles have one element type, and the operand that is a mask: the instructions have one type for all
others (``Add<T>``)."""

ELEMENT_ALIKE = frozenset(f"tile.{name}" for name in "add mul max min".split())
"""Operators that also want an element in the type of the tiles (``AddsAndMulsOpCodegen``); others convert it."""


_PAIRS = {("tile.bitwise_and", "uint8"), ("tile.bitwise_or", "uint8")}
"""Of which target pto makes operations on half as many uint16 (``tand``, ``tor`` of ``tl_templates/pto/common.h``)."""


def takes(name: str, dtype: str, mode: str = "", target: str = "ascendc") -> bool:
    """Whether an operator has an instruction for an element type; True for what the table does not know.

    ``mode`` is that of ``T.tile.compare``: int32 is compared for equality alone.
    """
    found = OPERATORS.get(name)
    equal = name == "tile.compare" and (dtype, mode) == ("int32", "EQ")
    return found is None or dtype in found[1] or equal or (target == "pto" and (name, dtype) in _PAIRS)


SIGNS: Mapping[str, str] = MappingProxyType(
    {
        "+": "tile.add",
        "-": "tile.sub",
        "*": "tile.mul",
        "/": "tile.div",
        "max": "tile.max",
        "min": "tile.min",
        "exp": "tile.exp",
        "log": "tile.ln",
        "sqrt": "tile.sqrt",
        "rsqrt": "tile.rsqrt",
        "abs": "tile.abs",
        "&": "tile.bitwise_and",
        "~": "tile.bitwise_not",
        "|": "tile.bitwise_or",
        "<<": "tile.bitwise_lshift",
        ">>": "tile.bitwise_rshift",
    }
)
"""What the vectoriser of ``T.Parallel`` makes of signs and functions (``ascend_lower_parallel_to_vector.cc``)."""

NONE, RINT, TRUNC = "CAST_NONE", "CAST_RINT", "CAST_TRUNC"
_ROUNDED = frozenset({RINT, "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", TRUNC})
_EXACT = frozenset({NONE})

CASTS: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType(
    {
        ("int8", "float16"): _EXACT,
        ("uint8", "float16"): _EXACT,
        ("int16", "float16"): _ROUNDED | _EXACT,
        ("int16", "float32"): _EXACT,
        ("int32", "int16"): _EXACT,
        ("int32", "float32"): _ROUNDED | _EXACT,
        ("int32", "int64"): _EXACT,
        ("int32", "float16"): _ROUNDED | _EXACT,  # ignored: multiplies by what SetDeqScale was given
        ("int64", "int32"): _EXACT,
        ("int64", "float32"): _ROUNDED,
        ("float16", "int8"): _ROUNDED | _EXACT,
        ("float16", "uint8"): _ROUNDED | _EXACT,
        ("float16", "int16"): _ROUNDED,
        ("float16", "int32"): _ROUNDED,
        ("float16", "float32"): _EXACT,
        ("bfloat16", "int32"): _ROUNDED,
        ("bfloat16", "float32"): _EXACT,
        ("float32", "int16"): _ROUNDED,
        ("float32", "int32"): _ROUNDED,
        ("float32", "int64"): _ROUNDED,
        ("float32", "float16"): _ROUNDED | {NONE, "CAST_ODD"},
        ("float32", "bfloat16"): _ROUNDED,
        ("float32", "float32"): _ROUNDED,
    }
)
"""``(source, destination)`` -> the rounding modes that ``Cast`` has for them. Values out of range saturate."""

_COPIED_EXACTLY = frozenset(
    {("float16", "float32"), ("bfloat16", "float32"), ("int16", "float32"), ("int8", "float16"), ("int32", "int16")}
)


def copy_mode(source: str, target: str) -> str:
    """The rounding mode that ``T.copy`` between two tiles of UB gives to ``Cast``."""
    return NONE if (source, target) in _COPIED_EXACTLY else RINT


def copies(source: str, target: str) -> bool:
    """Whether ``T.copy`` converts between two tiles of UB: where the instruction lacks the mode it does nothing."""
    return source == target or copy_mode(source, target) in CASTS.get((source, target), frozenset())
