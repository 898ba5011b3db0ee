"""The operators of Ascend TileLang, Expert and Developer mode: everything in the name space ``tilelang.language``.

Source: tile-ai/tilelang-ascend, branch ascendc_pto, 95acbd7f.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from tl2npu.dialects.ascend import inherited, operators
from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.compiler import COMPILERS
from tl2npu.dialects.tables import Section

SECTIONS: Mapping[str, Section] = MappingProxyType({**operators.SECTIONS, **inherited.SECTIONS})
"""The operators in the order of the documentation."""


def _adapted(row: Operator) -> Operator:
    return replace(row, vid_aware=frozenset(name for name, one in COMPILERS.items() if one.adapts_to_vid(row.name)))


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {row.name: _adapted(row) for section in SECTIONS.values() for row in section.operators}
)
"""All operators by their name relative to ``tilelang.language``."""
DROPPED = frozenset({"call_extern", "exp2", "likely"})
"""What the compiler takes in no mode: it drops the call without a word, or rejects it (facts 4: g8_callext)."""
_PREFIX = "tilelang.language."


def _aliases() -> dict[str, str]:
    """Dotted path of the defining module and function -> operator name, for imports past the name space."""
    found: dict[str, str] = {}
    for row in OPERATORS.values():
        path, _, function = row.defined.partition(":")
        if path.startswith("tilelang/") and not path.endswith("__init__.py"):
            found.setdefault(f"{path.removesuffix('.py').replace('/', '.')}.{function}", row.name)
    return found


ALIASES: Mapping[str, str] = MappingProxyType(_aliases())
"""Other canonical names of operators: ``tilelang.language.ascend_tile.add`` -> ``tile.add``."""


def lookup(canonical: str) -> Operator | None:
    """The operator of a canonical name such as ``tilelang.language.tile.add``; None for any other name.

    The path of the defining module is understood too: ``tilelang.language.ascend_tile.add``.
    """
    if not canonical.startswith(_PREFIX):
        return None
    name = canonical.removeprefix(_PREFIX)
    return OPERATORS.get(name) or OPERATORS.get(ALIASES.get(canonical, ""))


def similar(short: str, verb: str) -> str:
    """The operator whose name is nearly this one, which "does" exist, or "is" one; empty if there is none."""
    return "".join(f"; T.{name} {verb}" for name in get_close_matches(short, OPERATORS, n=1, cutoff=0.8))


def advice(short: str) -> str:
    """What to write for an operator that only TileLang for GPUs has; empty where that is none of these operators."""
    name = "tile.fill" if short == "clear" else f"tile.{short}" if f"tile.{short}" in OPERATORS else f"{short}_v0"
    return f"write `T.{name}`" if name in OPERATORS else ""
