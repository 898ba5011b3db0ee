from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.spans import Position
from tl2npu.source.text import SourceError
from tl2npu.source.tree import walk

EVERYTHING = '''\
# first
import os, sys

@deco(1, a=2)
@other
class C(Base):
    """doc ä"""; x: int = 1

    # above
    @staticmethod
    def f(a, *, b=(1 +
                   2), **kw) -> int:
        if a == "äö" + str(1):
            pass
        elif (b and
              kw):  # why
            return {k: v for k, v in kw.items()}
        elif sum(kw): raise E from None
        else:
            async def g():
                async with open("ü") as h, i:
                    async for j in h: await j; del j
                else_ = lambda q: q[1:2, ...]
        try:
            for k in range(3):
                while k: continue
                else:
                    break
        except (A, B) as e:
            assert e, f"{e!r} {k:>{w}}"
        except Z:
            global zz
        else:
            nonlocal_ = T.copy(A[i * 2, :], B,
    x)
        finally:
            a.b.c = d = -e ** f
        match a:
            case [1, *_] if x > 2:
                y = 1
            case {"k": v}:
                z += 1
with a: b; c
'''


def offset(text: str, line: int, column: int) -> int:
    return sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - 1


def cut(text: str, place: Position) -> str:
    start, end = offset(text, place.line, place.column), offset(text, place.end_line, place.end_column)
    return text[start:end]


def find(index: Index, code: str) -> cst.CSTNode:
    return next(
        node
        for node in walk(index.module)
        if isinstance(node, cst.BaseExpression) and index.module.code_for_node(node) == code
    )


def test_statements_stand_where_ast_says() -> None:
    index = Index.parse(EVERYTHING)
    assert len(index.statements) == sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(EVERYTHING)))
    for node in index.statements:
        place = index.position(node)
        if isinstance(node, cst.BaseSmallStatement):
            bare = node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            assert cut(EVERYTHING, place) == index.module.code_for_node(bare)
        else:
            word = {"TryStar": "try", "FunctionDef": "def", "ClassDef": "class"}.get(type(node).__name__)
            words = (word,) if word else ("elif", type(node).__name__.lower())
            assert cut(EVERYTHING, place).removeprefix("async ").startswith(words)


def test_expressions_stand_exactly() -> None:
    index = Index.parse(EVERYTHING)
    asked = 0
    for node in walk(index.module):
        if isinstance(node, cst.BaseExpression) and not isinstance(
            index.parent(node), (cst.FormattedStringExpression, cst.ImportAlias, cst.ImportFrom)
        ):
            asked += 1
            found, wanted = cut(EVERYTHING, index.position(node)), index.module.code_for_node(node)
            # code_for_node knows no indentation: it prints continued lines without that of the block
            assert "".join(found.split()) == "".join(wanted.split()), wanted
    assert asked > 80


def test_an_argument_spans_keyword_and_value() -> None:
    text = "def f():\n    if x:\n        g(1, name=a + b)\n"
    index = Index.parse(text)
    argument = next(node for node in walk(index.module) if isinstance(node, cst.Arg) and node.keyword)
    assert cut(text, index.position(argument)) == "name=a + b"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_of_every_kind_count(newline: str) -> None:
    text = newline.join(["x = 1", "if x:", "    f(a,", "      'ä', bb)", ""])
    index = Index.parse(text)
    call = next(node for node in walk(index.module) if isinstance(node, cst.Call))
    assert index.position(call) == Position(3, 5, 4, 15)
    assert index.position(find(index, "bb")) == Position(4, 12, 4, 14)


def test_form_feed_is_not_a_newline() -> None:
    index = Index.parse("x = '\x0c'\n\x0cy = z\n")
    assert index.position(index.statements[1]).line == 2


def test_parents_and_membership() -> None:
    index = Index.parse("def f():\n    with a:\n        b(c)\n")
    name = find(index, "c")
    assert [type(node).__name__ for node in index.ancestors(name)] == [
        "Arg", "Call", "Expr", "SimpleStatementLine", "IndentedBlock", "With", "IndentedBlock", "FunctionDef", "Module",
    ]  # fmt: skip
    assert index.enclosing(name, cst.With, cst.FunctionDef) is index.statements[1]
    assert index.enclosing(index.statements[1], cst.With) is None
    assert name in index
    assert index.module in index
    assert index.parent(index.module) is None
    assert name.deep_clone() not in index
    for question in (index.parent, index.position):
        with pytest.raises(LookupError):
            question(cst.Name("c"))


def test_every_node_but_whitespace_has_its_parent() -> None:
    index = Index.parse(EVERYTHING)
    parents: dict[int, cst.CSTNode] = {}

    class Visitor(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            parents.update((id(child), node) for child in node.children)
            return True

    index.module.visit(Visitor())
    for node in walk(index.module):
        if node is not index.module:
            assert index.parent(node) is parents[id(node)]
    kinds = {type(node).__name__ for node in walk(index.module)}
    assert not [kind for kind in kinds if "Whitespace" in kind or kind in ("Comma", "LeftParen", "EmptyLine")]


def test_a_rebuilt_tree_has_the_positions_of_its_new_text() -> None:
    module = cst.parse_module("a\nb\n")
    index = Index.of(module.with_changes(body=[*module.body, module.body[0].deep_clone()]))
    assert [index.position(node).line for node in index.statements] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\nif x\n    y\n", 2), ("x = (\n", 1), ("print 'x'\n", 1), ("x = 1\n  y = 2\n", 2), ("x = " + "(" * 300, 1)],
)
def test_syntax_errors_have_a_line(text: str, line: int) -> None:
    with pytest.raises(SourceError, match="syntax error") as caught:
        Index.parse(text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["x = " + "-" * 100_000 + "1", "x = " + "+".join("1" * 50_000)])
def test_deep_nesting_is_an_error_not_a_crash(text: str) -> None:
    with pytest.raises(SourceError):
        Index.parse(text)


def test_reading_our_own_files(request: pytest.FixtureRequest) -> None:
    root = Path(request.config.rootpath) / "tl2npu" / "source"
    for path in root.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        index = Index.parse(text)
        wanted = sorted(
            (node.lineno, node.col_offset + 1) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)
        )
        places = [index.position(node) for node in index.statements]
        assert sorted((place.line, place.column) for place in places) == wanted


def test_the_index_after_edits_is_that_of_the_new_tree() -> None:
    index = Index.parse(EVERYTHING)
    for round in range(6):
        edits = Edits(index)
        for statement in index.statements[round::7]:
            line = index.parent(statement)
            if isinstance(statement, cst.SimpleStatementLine) or not isinstance(line, cst.SimpleStatementLine):
                continue
            if round % 2:
                edits.remove(statement)
            else:
                edits.replace_many(statement, [cst.parse_statement("f = lambda: g(1)").body[0], statement])
        module = edits.apply(index.module)
        after, anew = index.after(module), Index.of(module)
        assert [id(node) for node in after.statements] == [id(node) for node in anew.statements]
        everything = {id(node): node for tree in (index.module, module) for node in walk(tree)}
        for node in everything.values():
            assert (node in after) == (node in anew)
            assert node not in anew or after.parent(node) is anew.parent(node)
        index = after
    assert index.binds_in_expressions


def test_the_line_of_a_node_is_that_of_its_position() -> None:
    index = Index.parse(EVERYTHING)
    for node in walk(index.module):
        assert index.line(node) == index.position(node).line
