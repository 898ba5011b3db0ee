"""The functions of one number: their names, what the NPUs have of each, and formulas for what they lack.

A line of the table is all that a function needs: the readers of both languages, both targets, the checks and the
simulator go by it (CONTRIBUTING.md, "An operator"). What is indented belongs to the line before. Columns:

1. the name in TileLang, then other names for it: of TileLang, of ``tl.math``, of libdevice;
2. Ascend C: the operator on whole tiles, with ``*`` if ``T.Parallel`` has it too, or the rounding of ``T.tile.cast``;
3. AscendNPU IR: ``vector`` in ``T.Parallel``, or the operator on whole tiles that has a tile for what is on its way;
4. the formula, for where the columns before are empty: steps by name, separated by ``;``, of functions that have no
   formula themselves. It is computed in float32, and must not overflow before the function does;
5. how close it is in float32 where its parts are exact: the error is at most that, times the value beyond 1.

tests/dialects/test_functions.py holds formulas and accuracy against NumPy. ``erf``: the rational approximation of
Eigen and XLA (``generic_fast_erf_float``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_TABLE = """
exp __exp fast_expf         | exp*       | vector |
log __log ln fast_logf      | ln*        | vector |
sqrt ieee_fsqrt sqrt_rn     | sqrt*      | vector |
rsqrt ieee_frsqrt           | rsqrt*     | vector |
abs fabs                    | abs*       | vector |
sigmoid                     | sigmoid    | vector |
sin __sin                   | sin        |        |
cos __cos                   | cos        |        |
floor                       | CAST_FLOOR |        |
ceil                        | CAST_CEIL  |        |
trunc                       | CAST_TRUNC |        |
round nearbyint rint        | CAST_RINT  |        |
exp2 fast_exp2f             |            | vexp2  | exp(x * ln2)                       | 1e-5
exp10 __exp10               |            |        | exp(x * ln10)                      | 1e-5
log2 __log2                 |            | vlog2  | log(x) * log2e                     | 3e-7
log10 __log10               |            |        | log(x) * log10e                    | 3e-7
log1p                       |            |        | log(x + 1)                         | 2e-7
tan __tan                   |            |        | sin(x) / cos(x)                    | 3e-7
tanh                        |            |        | 2 * sigmoid(2 * x) - 1             | 2e-7
atanh                       |            |        | log((x + 1) / (1 - x)) * 0.5       | 3e-7
cosh                        |            |        |
    t = exp(x * 0.5); u = exp(x * -0.5); t * 0.5 * t + u * 0.5 * u                            | 6e-7
sinh                        |            |        |
    t = exp(x * 0.5); u = exp(x * -0.5); t * 0.5 * t - u * 0.5 * u                            | 6e-7
erf                         |            |        |
    c = min(max(x, -4), 4); y = c * c;
    p = y * -2.72614225801306e-10 + 2.77068142495902e-8; p = p * y - 2.10102402082508e-6;
    p = p * y - 5.69250639462346e-5; p = p * y - 7.34990630326855e-4; p = p * y - 2.95459980854025e-3;
    q = y * -1.45660718464996e-5 - 2.13374055278905e-4; q = q * y - 1.68282697438203e-3;
    q = q * y - 7.37332916720468e-3;
    c * (p * y - 1.60960333262415e-2) / (q * y - 1.42647390514189e-2)                       | 6e-7
"""


@dataclass(frozen=True)
class Function:
    """A line of the table; what a column leaves empty is an empty string, an accuracy 0."""

    names: tuple[str, ...]
    ascend: str
    npuir: str
    formula: str = ""
    close: float = 0.0

    @property
    def name(self) -> str:
        """The name in TileLang."""
        return self.names[0]

    @property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """The steps of the formula, name and text; the last one, which is the value, has the empty name."""
        *named, value = self.formula.split(";")
        pairs = (step.split("=") for step in named)
        return (*((name.strip(), text.strip()) for name, text in pairs), ("", value.strip()))

    @property
    def rounds(self) -> bool:
        """True for those that give whole numbers."""
        return self.ascend.startswith("CAST_")


def _function(line: str) -> Function:
    names, ascend, npuir, formula, *close = (part.strip() for part in line.split("|"))
    return Function(tuple(names.split()), ascend, npuir, formula, float(close[0]) if close else 0.0)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {row.name: row for row in map(_function, _TABLE.strip().replace("\n ", " ").splitlines())}
)
"""By their name in TileLang."""

NAMES: Mapping[str, str] = MappingProxyType({name: row.name for row in FUNCTIONS.values() for name in row.names})
"""Any name of a function -> its name in TileLang."""

IN_FLOATS = frozenset(FUNCTIONS) - {"abs"}
"""Functions that are computed in floats, whatever the argument is."""

OF_FLOATS = frozenset(name for name in IN_FLOATS if not FUNCTIONS[name].rounds)
"""Those of them whose value need not be a whole number."""

ASCEND_LOOPS: Mapping[str, str] = MappingProxyType(
    {name: row.ascend[:-1] for name, row in FUNCTIONS.items() if row.ascend.endswith("*")}
)
"""What ``T.Parallel`` for Ascend C takes of an element (facts 3), with its operator on whole tiles."""

NPUIR_VECTOR = frozenset(name for name, row in FUNCTIONS.items() if row.npuir == "vector") | {"fabs"}
"""What ``T.Parallel`` for AscendNPU IR makes vector operations of (``src/transform/npu_loop_vectorize.cc``)."""

NPUIR_TILES: Mapping[str, str] = MappingProxyType(
    {name: row.npuir for name, row in FUNCTIONS.items() if row.npuir not in ("", "vector")}
)
"""Functions of single values there, with their operator on whole tiles."""
