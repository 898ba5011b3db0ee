"""The functions of ``T.Parallel`` expressions under one name each, however the source calls them."""

from __future__ import annotations

from tl2npu.dialects.functions import ASCEND_LOOPS, FUNCTIONS, NAMES

MATH = frozenset(FUNCTIONS) | {"round_away", "pow", "max", "min", "clamp"}
"""Functions whose value is computed element by element."""

OF_NUMBERS = frozenset("max min abs clamp floor ceil trunc round".split())
"""Those that may also be computed with numbers, outside of tiles."""

SYNONYMS = {**NAMES, "Max": "max", "Min": "min", "power": "pow"}

SIGNS = {
    "ieee_add": "+",
    "ieee_sub": "-",
    "ieee_mul": "*",
    "ieee_fdiv": "/",
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "floordiv": "//",
    "floormod": "%",
    "FloorDiv": "//",
    "FloorMod": "%",
}
"""Functions that are an operator."""

RECIPROCALS = frozenset({"ieee_frcp", "fast_rcp"})
FUSED = frozenset({"ieee_fmaf", "fma"})
SELECTS = frozenset({"if_then_else", "Select"})
COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
KINDS = frozenset({"isnan", "isinf", "isfinite"})
CONNECTIVES = {"And": "and", "Or": "or", "all_of": "and", "any_of": "or"}

TILE = {name: row.ascend for name, row in FUNCTIONS.items() if row.ascend.islower() and name not in ASCEND_LOOPS}
"""Functions that are an operator on whole tiles only; source and destination must not overlap."""

ROUNDING = {"round_away": "CAST_ROUND", **{name: row.ascend for name, row in FUNCTIONS.items() if row.rounds}}
"""Functions that are a cast of float32 to float32."""
LOG2_ROUNDED = {"floor": "floor_log2", "ceil": "ceil_log2"}
"""Roundings that are exact for a logarithm to base two, under the name of the two together."""
POWER_OF_TWO = "power_of_two"
"""``exp2`` of a whole number."""
INEXACT = frozenset("exp2 exp10 log log2 log10 log1p pow".split())
"""Functions that a mathematician expects whole numbers or powers of, and that the vector core only comes close to."""
AWAY = "ties-away-from-zero"
"""The second argument of ``T.round`` that makes it ``round_away``."""


def without_base(name: str) -> bool:
    """True for a function that is another one but for its base, such as ``exp2``."""
    return name.rstrip("0123456789") in FUNCTIONS.keys() - {name}
