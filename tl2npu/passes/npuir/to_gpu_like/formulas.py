"""What the vector operators compute, as expressions of ``T.Parallel``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

BINARY: Mapping[str, str] = MappingProxyType(
    {
        "vadd": "{0} + {1}",
        "vsub": "{0} - {1}",
        "vmul": "{0} * {1}",
        "vdiv": "{0} / {1}",
        "vmax": "T.max({0}, {1})",
        "vmin": "T.min({0}, {1})",
        "vpow": "T.pow({0}, {1})",
        "vand": "{0} & {1}",
        "vor": "{0} | {1}",
        "vxor": "{0} ^ {1}",
        "vshl": "{0} << {1}",
    }
)
"""Operators of (A, B, C)."""

UNARY: Mapping[str, str] = MappingProxyType(
    {
        "vexp": "T.exp({0})",
        "vln": "T.log({0})",
        "vexp2": "T.exp2({0})",
        "vlog2": "T.log2({0})",
        "vrelu": "T.max({0}, 0.0)",
        "vsigmoid": "T.sigmoid({0})",
        "vsqrt": "T.sqrt({0})",
        "vrsqrt": "T.rsqrt({0})",
        "vabs": "T.abs({0})",
        "vrec": "1.0 / {0}",
        "vnot": "~{0}",
        "vcos": "T.cos({0})",
        "vsin": "T.sin({0})",
        "vtanh": "T.tanh({0})",
    }
)
"""Operators of one tile."""

APPROXIMATED: Mapping[str, str] = MappingProxyType(
    {
        "vcos": "a series of four terms, correct for arguments in [-1, 1] only",
        "vsin": "a series of four terms, correct for arguments in [-1, 1] only",
        "vtanh": "a quotient of exponentials, NaN where they overflow",
    }
)
"""What the compiler for AscendNPU IR makes of functions that Ascend C computes (``codegen_npuir_dev.cc``)."""

COMPARISONS: Mapping[str, str] = MappingProxyType(
    {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "ge": ">=", "le": "<="}
)
ROUNDING: Mapping[str, str] = MappingProxyType(
    {"rint": "T.round({0})", "floor": "T.floor({0})", "ceil": "T.ceil({0})", "trunc": "{0}"}
)
"""What a float becomes before it is cast to an integer, which cuts off."""

ON_FLOATS = frozenset({"vdiv", "vrelu", "vrec"})
"""Formulas that mean something else in integers."""
