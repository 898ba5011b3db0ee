"""The functions of ``T.Parallel`` expressions under one name each, however the source calls them."""

from __future__ import annotations

MATH = frozenset(
    """
    exp exp2 exp10 log log2 log10 log1p sqrt rsqrt abs sigmoid tanh erf sin cos tan floor ceil trunc round
    round_away pow max min clamp silu sinh cosh
    """.split()
)
"""Functions whose value is computed element by element."""

OF_NUMBERS = frozenset("max min abs clamp floor ceil trunc round".split())
"""Those that may also be computed with numbers, outside of tiles."""

SYNONYMS = {
    "__exp": "exp",
    "__exp10": "exp10",
    "__log": "log",
    "__log2": "log2",
    "__log10": "log10",
    "__sin": "sin",
    "__cos": "cos",
    "__tan": "tan",
    "fabs": "abs",
    "nearbyint": "round",
    "ieee_fsqrt": "sqrt",
    "ieee_frsqrt": "rsqrt",
    "ln": "log",
    "Max": "max",
    "Min": "min",
    "power": "pow",
}

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
CONNECTIVES = {"And": "and", "Or": "or", "all_of": "and", "any_of": "or"}

VECTOR = frozenset({"exp", "log", "sqrt", "rsqrt", "abs"})
"""Functions of one element that the vectoriser of ``T.Parallel`` takes (facts 3)."""

OPERATORS = {"exp": "exp", "log": "ln", "sqrt": "sqrt", "rsqrt": "rsqrt", "abs": "abs"}
"""The same as operators on whole tiles."""

TILE = {"sigmoid": "sigmoid", "silu": "silu", "sin": "sin", "cos": "cos"}
"""Functions that are an operator on whole tiles only; source and destination must not overlap."""

ROUNDING = {
    "floor": "CAST_FLOOR",
    "ceil": "CAST_CEIL",
    "trunc": "CAST_TRUNC",
    "round": "CAST_RINT",
    "round_away": "CAST_ROUND",
}
"""Functions that are a cast of float32 to float32."""
LOG2_ROUNDED = {"floor": "floor_log2", "ceil": "ceil_log2"}
"""Roundings that are exact for a logarithm to base two, under the name of the two together."""
POWER_OF_TWO = "power_of_two"
"""``exp2`` of a whole number."""
INEXACT = frozenset("exp2 exp10 log log2 log10 log1p pow".split())
"""Functions that a mathematician expects whole numbers or powers of, and that the vector core only comes close to."""
AWAY = "ties-away-from-zero"
"""The second argument of ``T.round`` that makes it ``round_away``."""
