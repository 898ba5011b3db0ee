"""The constants of another module: literals, simple arithmetic on them, and tuples, lists and dicts of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import EllipsisType
from typing import Any

from tl2npu.source.constants import UNKNOWN, Evaluator, Expression, NoValue, Reference

Value = int | float | str | bool | None | EllipsisType | tuple["Value", ...] | list["Value"] | dict[Any, "Value"]
"""``...`` stands for a value in a dict that cannot be told."""

_LIMIT = 1 << 63


class Dotted(str):
    """The dotted name of something of a library: the key of a dict, never a value."""


def evaluate(node: ast.expr, known: Callable[[ast.expr], Value]) -> Value:
    """The value of an expression; ``known`` gives that of names and attributes. Raises :class:`NoValue`."""
    found: Value = _Module(known).value(node)
    return found


class _Module(Evaluator):
    def __init__(self, known: Callable[[ast.expr], Value]) -> None:
        self.known = known

    def value(self, node: Expression) -> Any:
        return self._dict(node) if isinstance(node, ast.Dict) else super().value(node)

    def reference(self, node: Reference) -> Value:
        assert isinstance(node, (ast.Name, ast.Attribute))
        value = self.known(node)
        if isinstance(value, Dotted):
            raise NoValue
        return value

    def binary(self, sign: str, left: Any, right: Any) -> Any:
        if isinstance(left, dict) and isinstance(right, dict) and sign == "|":
            return _merged(left, right)
        found = super().binary(sign, left, right)
        if isinstance(found, (int, float)) and not abs(found) < _LIMIT:
            raise NoValue
        return found

    def _dict(self, node: ast.Dict) -> Value:
        """All keys must be known, values need not."""
        made: dict[Any, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(value)
                if not isinstance(inner, dict):
                    raise NoValue
                made = _merged(made, inner)
                continue
            name = self.known(key) if isinstance(key, (ast.Name, ast.Attribute)) else self.value(key)
            if not isinstance(name, (int, float, str)):
                raise NoValue
            try:
                made = _merged(made, {name: self.value(value)})
            except NoValue:
                made = _merged(made, {name: UNKNOWN})
        return made


def _merged(one: dict[Any, Value], other: dict[Any, Value]) -> dict[Any, Value]:
    """What comes last stands last: one key may be spelled in two ways."""
    return {**{key: value for key, value in one.items() if key not in other}, **other}
