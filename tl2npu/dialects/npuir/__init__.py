"""The operators of TileLang for AscendNPU IR: everything that ``tilelang.language`` of that branch exports.

Source: tile-ai/tilelang-ascend, branch npuir, bd7c60c3. Most operators have two names, ``vadd`` and ``npuir_add``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.npuir import frame, inherited, matrix, movement, reduce, vector

FILES = (frame, movement, matrix, vector, reduce, inherited)
"""The data files, in the order of the documentation; each has a tuple ``OPERATORS``."""

OPERATORS: Mapping[str, Operator] = MappingProxyType({row.name: row for file in FILES for row in file.OPERATORS})
"""All operators by their name relative to ``tilelang.language``."""

_PREFIX = "tilelang.language."
_CUSTOMIZE = "tilelang.language.customize_npuir."


def _short_names() -> dict[str, str]:
    first: dict[str, str] = {}
    for row in OPERATORS.values():
        if "customize_npuir" in row.defined:
            first.setdefault(row.defined, row.name)
    return {row.name: first.get(row.defined, row.name) for row in OPERATORS.values()}


SHORT: Mapping[str, str] = MappingProxyType(_short_names())
"""The short name of an operator under any of its names: ``npuir_add`` and ``vadd`` -> ``vadd``."""

OLDER_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {"log": "vln", **{name: f"v{name}" for name in "exp sqrt rsqrt sigmoid abs sin cos tanh erf".split()}}
)
"""What are functions of numbers today were operators on buffers in the older spelling, ``T.exp(src, dst)``: their names
today."""


def lookup(canonical: str) -> Operator | None:
    """The operator of a canonical name such as ``tilelang.language.vadd``; None for any other name.

    The path of the defining module is understood too: ``tilelang.language.customize_npuir.npuir_add``.
    """
    for prefix in (_CUSTOMIZE, _PREFIX):
        if canonical.startswith(prefix):
            return OPERATORS.get(canonical.removeprefix(prefix))
    return None
