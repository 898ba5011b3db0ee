"""The values of literals. LibCST asks Python's parser for each, however plain it is."""

from __future__ import annotations

import ast
from functools import lru_cache

import libcst as cst


def text_of(node: cst.SimpleString) -> str | bytes:
    """What a string stands for."""
    written = node.value
    if written[0] in "\"'" and "\\" not in written and written[:3] not in ('"""', "'''"):
        return written[1:-1]
    return node.evaluated_value


def number_of(node: cst.Integer | cst.Float) -> int | float:
    """What a number stands for."""
    return _number(node.value)


@lru_cache(maxsize=1024)
def _number(written: str) -> int | float:
    found = ast.literal_eval(written)
    assert isinstance(found, (int, float))
    return found
