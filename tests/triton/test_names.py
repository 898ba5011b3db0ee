"""Which names are live behind a statement."""

from __future__ import annotations

import ast

import pytest

from tl2npu.triton.read.names import Live, exposed

KERNEL = """
def kernel(a, n):
    x = a
    y = a
    for i in range(n):
        z = y
        if z:
            y = x
            w = 1
        else:
            w = 2
        x = w
    if n:
        return
    else:
        x = 3
    v = x
    x += 1
    return x
"""


@pytest.mark.parametrize(
    ("line", "live"),
    [
        (3, {"a", "n", "range", "x"}),
        (4, {"n", "range", "x", "y"}),
        (6, {"n", "x", "y", "z"}),  # y of the turn before, if the branch does not set it
        (8, {"n", "y"}),
        (9, {"n", "y", "w"}),  # x is set below before the next turn reads it
        (12, {"n", "x", "y"}),
        (5, {"n"}),  # x is set again on the only way that reads it
        (16, {"x"}),
        (17, {"x"}),
        (18, {"x"}),
        (19, set()),
    ],
)
def test_behind_a_statement(line: int, live: set[str]) -> None:
    function = ast.parse(KERNEL).body[0]
    assert isinstance(function, ast.FunctionDef)
    stmt = next(node for node in ast.walk(function) if isinstance(node, ast.stmt) and node.lineno == line)
    assert Live(function.body).after(stmt) == live


def test_a_loop_needs_what_a_turn_reads_before_it_sets_it() -> None:
    function = ast.parse(KERNEL).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert isinstance(function.body[2], ast.For)
    assert exposed(function.body[2].body) == {"x", "y"}
