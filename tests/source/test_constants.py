"""Constant expressions have Python's value in either syntax tree, or none."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from tl2npu.source.constants import Evaluator, NoValue

VALUES = [
    ("-7 // 2 + 7 % 3", -3),
    ("64 ** -0.5", 0.125),
    ("1 << 4 | 3 & 2", 18),
    ("'float' + '16'", "float16"),
    ("(1, 2) + (3,)", (1, 2, 3)),
    ("(1, *(2, 3))[-1]", 3),
    ("0 < 1 < 1", False),
    ("0 < 1 <= 1 < 2", True),
    ("2 not in (1, 3)", True),
    ("'a' in 'abc'", True),
    ("None is None and not 0", True),
    ("0 or 5 if 1 > 2 else '' or 6", 6),
    ("False and 1 / 0", False),
]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_both_trees_have_the_value_of_python(text: str, expected: object) -> None:
    for node in (cst.parse_expression(text), ast.parse(text, mode="eval").body):
        found = Evaluator().value(node)
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "2 ** 1000", "(-8) ** 0.5", "1 << -1", "x", "x.y", "f(1)", "(1, 2)[2]", "'a' < 1", "1 in 2", "1 in 'a'"],
)
def test_what_python_does_not_compute_or_nobody_knows_has_none(text: str) -> None:
    for node in (cst.parse_expression(text), ast.parse(text, mode="eval").body):
        with pytest.raises(NoValue):
            Evaluator().value(node)
