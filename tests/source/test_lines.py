from __future__ import annotations

from pathlib import Path

import libcst as cst

from tl2npu.source.index import Foreign, Index
from tl2npu.source.lines import line_beside
from tl2npu.source.spans import line_in_statement
from tl2npu.source.tree import walk

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TEXT = """\
@a
@b(
    c,
    (d),
    *e,
    k=(
        f
    ),
    l=g(1, [
        h]),
    **m)
@n(x for x in
   y)
def f(o,
      p: q(
          1,
          r) = s,
      /, *t, u: v, w=(
          1)) -> z:
    call(
        a, b.c(d,
               e)
    )[0]
    call(
        (
            a), k=b, l=
        c)
"""


def compare(text: str) -> tuple[int, int]:
    """How many lines are told, of how many: all that are told must be those of the printed statement."""
    index = Index.parse(text)
    told = asked = 0
    for node in walk(index.module):
        statement = index.statement(node)
        if statement is None or node is statement or not isinstance(node, (cst.BaseExpression, cst.Arg, cst.Param)):
            continue
        base = index.position(statement)
        if base.line == base.end_line or isinstance(statement, cst.Try):
            continue
        found = line_beside(statement, node, index._parents, index._python_statements[id(statement)])
        printed = line_in_statement(index.module, statement, node, base, index._parents)
        assert found in (None, printed), (cst.Module(()).code_for_node(node), found, printed)
        told += found is not None
        asked += 1
    return told, asked


def test_lines_are_those_of_the_printed_statement() -> None:
    told, asked = compare(TEXT)
    assert told > 0.6 * asked


def test_lines_beside_statements_of_other_files() -> None:
    native = Index.parse(TEXT)
    other = cst.ensure_type(Index.parse("other = 1\n").module.body[0], cst.SimpleStatementLine)
    function = cst.ensure_type(native.module.body[0], cst.FunctionDef)
    body = function.body.with_changes(body=[other, *function.body.body])
    module = native.module.with_changes(body=[function.with_changes(body=body)])
    small = other.body[0]
    index = native.including(module, {id(small): Foreign("other.py", 1, Index.of(cst.Module([other])))})
    for node in walk(function.params):
        if isinstance(node, cst.BaseExpression):
            assert index.line(node) == native.line(node)


def test_lines_of_the_fixtures() -> None:
    told = sum(compare(path.read_text(encoding="utf-8"))[0] for path in sorted(FIXTURES.glob("*/*/before.py"))[::12])
    assert told > 300
