"""Conditions of a module that its kernels need not ask: Triton's version, environment variables that nobody sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tl2npu.source.signs import COMPARISONS, COMPUTED, sign_of

TRITON = (3, 8)
"""As in :mod:`tl2npu.dialects.triton.operators`."""

_PARSES = frozenset({"parse", "Version", "parse_version", "LooseVersion"})
_GETS = frozenset({"os.environ.get", "os.getenv", "environ.get", "getenv"})
_NUMBERS = re.compile(r"\d+(\.\d+)*")


@dataclass(frozen=True)
class Verdict:
    """Whether a condition ``holds``; ``unset``: the environment variable that is taken for not set, if it asks one."""

    holds: bool
    unset: str = ""

    def arms(self, node: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The statements that run, and those that do not."""
        return (node.body, node.orelse) if self.holds else (node.orelse, node.body)


def decided(test: ast.expr, values: Mapping[str, ast.expr]) -> Verdict | None:
    """What a comparison with Triton's version, or of an environment variable, comes to; None for another condition.

    ``values``: what the module gives to names that nothing sets again.
    """
    if isinstance(test, ast.Name) and test.id in values:
        return decided(values[test.id], {name: value for name, value in values.items() if name != test.id})
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = decided(test.operand, values)
        return None if found is None else replace(found, holds=not found.holds)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and (sign := sign_of(test.ops[0])) in COMPARISONS:
        compared, sides = COMPUTED[sign], (test.left, test.comparators[0])
        return _by_version(compared, *map(_version, sides)) or _by_variable(compared, *sides)
    return None


def _by_version(
    compared: Callable[[Any, Any], bool], left: tuple[int, ...] | None, right: tuple[int, ...] | None
) -> Verdict | None:
    if left is None or right is None or (left, right).count(TRITON) != 1:
        return None
    length = max(len(left), len(right))
    return Verdict(compared(*((*side, *[0] * (length - len(side))) for side in (left, right))))


def _version(node: ast.expr) -> tuple[int, ...] | None:
    """The numbers of a version."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return _version(node.args[0]) if ast.unparse(node.func).rpartition(".")[2] in _PARSES else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NUMBERS.fullmatch(node.value):
        return tuple(map(int, node.value.split(".")))
    return TRITON if ast.unparse(node) == "triton.__version__" else None


def _by_variable(compared: Callable[[Any, Any], bool], left: ast.expr, right: ast.expr) -> Verdict | None:
    name, found = _unset(left)
    if name and isinstance(right, ast.Constant) and isinstance(right.value, str):
        return Verdict(bool(compared(found, right.value)), name)
    return None


def _unset(node: ast.expr) -> tuple[str, str]:
    """An environment variable with the text that a program gets where it is not set; none of other expressions."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _GETS and len(node.args) == 2 and not node.keywords:
        name, default = (arg.value if isinstance(arg, ast.Constant) else None for arg in node.args)
        if isinstance(name, str) and isinstance(default, str):
            return name, default
    return "", ""
