"""The configurations of ``triton.autotune``, as the code of a module makes them: lists, comprehensions, functions.

Triton itself takes whichever is fastest, so any is right. What depends on the machine, or on code that is not read, is
left open: of a condition the first branch that gives a list is taken, of a filter the first configuration.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from tl2npu.source.constants import UNKNOWN
from tl2npu.source.functions import MOST, Reader, Scope, TooLong


@dataclass(frozen=True)
class Configuration:
    """A call of ``triton.Config``, and the value of each parameter, which may be unseen."""

    call: ast.Call
    values: Mapping[object, object]
    options: Mapping[str, object]


def configurations(node: ast.expr | None, scope: Scope) -> tuple[list[Configuration], bool]:
    """The configurations that an expression of a module gives; True if more than these may be, as a filter is unseen.

    Empty where they are not seen.
    """
    reader = _Reader(scope)
    try:
        found = reader.eval(node, {}, scope) if node is not None else UNKNOWN
    except (TooLong, RecursionError):
        return [], False
    items = [item for item in found if isinstance(item, Configuration)] if isinstance(found, (list, tuple)) else []
    return (items[:1], True) if reader.doubtful else (items[:MOST], False)


class _Reader(Reader):
    """Knows ``triton.Config``."""

    def attribute(self, holder: object, name: str) -> object:
        if not isinstance(holder, Configuration):
            return UNKNOWN
        return holder.values if name == "kwargs" else holder.options.get(name, UNKNOWN)

    def made(self, name: str, node: ast.Call, words: dict[str, object]) -> object:
        if name != "Config":
            return None
        values = self.element(node.args[0]) if node.args else words.pop("kwargs", {})
        return Configuration(node, values, words) if isinstance(values, dict) else UNKNOWN
