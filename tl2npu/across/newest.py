"""Conditions of a module on Triton's version: they hold as for the version whose operators the catalogue has."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

TRITON = (3, 8)
"""As in :mod:`tl2npu.dialects.triton.operators`."""

_PARSES = frozenset({"parse", "Version", "parse_version", "LooseVersion"})
_NUMBERS = re.compile(r"\d+(\.\d+)*")
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def holds(test: ast.expr, values: Mapping[str, ast.expr]) -> bool | None:
    """Whether a comparison with Triton's version holds, None for another condition.

    ``values``: what the module gives to names that nothing sets again.
    """
    if isinstance(test, ast.Name) and test.id in values:
        return holds(values[test.id], {name: value for name, value in values.items() if name != test.id})
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = holds(test.operand, values)
        return None if found is None else not found
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _COMPARED:
        return None
    sides = [_version(side) for side in (test.left, test.comparators[0])]
    if None in sides or sides.count(TRITON) != 1:
        return None
    length = max(len(side) for side in sides if side is not None)
    left, right = ((*side, *[0] * (length - len(side))) for side in sides if side is not None)
    return _COMPARED[type(test.ops[0])](left, right)


def _version(node: ast.expr) -> tuple[int, ...] | None:
    """The numbers of a version."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return _version(node.args[0]) if ast.unparse(node.func).rpartition(".")[2] in _PARSES else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NUMBERS.fullmatch(node.value):
        return tuple(map(int, node.value.split(".")))
    return TRITON if ast.unparse(node) == "triton.__version__" else None
