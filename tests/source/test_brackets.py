"""A value that is broken over lines stays one value where it is moved out of its brackets."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import walk

BROKEN = "f(\n    a\n    + b\n)\n"
CALL = "f(\n    a\n    (b)\n)\n"
ELEMENT = "f(\n    a\n    [b](c)\n)\n"
METHOD = "f(\n    a.b\n    .c(d)\n)\n"
MINUS = "f(\n    a\n    - b\n)\n"  # without brackets `a` and `- b` would be two statements


def argument(index: Index) -> cst.BaseExpression:
    call = index.module.body[0].body[0].value  # type: ignore[attr-defined, union-attr]
    assert isinstance(call, cst.Call)
    return call.args[0].value


@pytest.mark.parametrize("text", [BROKEN, MINUS, CALL, ELEMENT, METHOD])
def test_a_broken_value_gets_brackets(text: str) -> None:
    index = Index.parse("x = 1\n" + text)
    value = argument(Index.parse(text))
    assign = index.module.body[0].body[0]  # type: ignore[attr-defined, union-attr]
    edits = Edits(index)
    edits.replace(assign.value, value)
    new = edits.apply(index.module).code
    assert ast.dump(ast.parse(new).body[0].value) == ast.dump(ast.parse(text).body[0].value.args[0])  # type: ignore[attr-defined]


def test_a_broken_value_in_a_new_loop_gets_brackets() -> None:
    index = Index.parse("x = 1\n")
    loop = cst.ensure_type(cst.parse_statement("for i in y:\n    z = 0\n"), cst.For)
    line = cst.ensure_type(cst.ensure_type(loop.body, cst.IndentedBlock).body[0], cst.SimpleStatementLine)
    store = line.body[0].with_changes(value=argument(Index.parse(BROKEN)))
    new_loop = loop.with_deep_changes(line, body=[store])
    edits = Edits(index)
    edits.replace(index.module.body[0], new_loop)
    ast.parse(edits.apply(index.module).code)


@pytest.mark.parametrize(
    "statement",
    [
        "if {}:\n    pass\n",
        "while {}:\n    pass\n",
        "for i in {}:\n    pass\n",
        "assert {}\n",
        "with {} as c:\n    pass\n",
        "if a:\n    pass\nelse:\n    x = {}\n",
        "if a:\n    pass\nelif {}:\n    pass\n",
        "x: int = {}\n",
        "x += {}\n",
    ],
)
def test_every_place_that_ends_with_the_line(statement: str) -> None:
    """The value comes into a new statement, and into one that stands there."""
    expected = ast.dump(ast.parse(statement.format("(a + b)")))
    index = Index.parse(statement.format("here"))
    here = next(node for node in walk(index.module) if isinstance(node, cst.Name) and node.value == "here")
    edits = Edits(index)
    edits.replace(here, argument(Index.parse(BROKEN)))
    assert ast.dump(ast.parse(edits.apply(index.module).code)) == expected
    new = cst.parse_statement(statement.format("here"))
    (here,) = (node for node in walk(new) if isinstance(node, cst.Name) and node.value == "here")
    moved = new.deep_replace(here, argument(Index.parse(BROKEN)))  # type: ignore[arg-type]
    index = Index.parse("x = 1\n")
    edits = Edits(index)
    edits.replace(index.module.body[0], cst.ensure_type(moved, cst.BaseStatement))
    assert ast.dump(ast.parse(edits.apply(index.module).code)) == expected


def test_what_needs_no_brackets_gets_none() -> None:
    index = Index.parse("x = 1\n")
    edits = Edits(index)
    edits.replace(index.module.body[0].body[0].value, cst.parse_expression("g(\n    1,\n)"))  # type: ignore[attr-defined, union-attr]
    assert edits.apply(index.module).code == "x = g(\n    1,\n)\n"
