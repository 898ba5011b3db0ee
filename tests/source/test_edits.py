from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tl2npu.source.edits import EditError, Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import walk


def code_of(index: Index, node: cst.CSTNode) -> str:
    """A node without what surrounds it: comma, semicolon, lines above, the indentation."""
    if isinstance(node, cst.Param):
        bare = node.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_param=cst.SimpleWhitespace(""))
        star = {"*": "star_arg", "**": "star_kwarg"}.get(str(node.star))
        node = cst.Parameters(**{star: bare}) if star else cst.Parameters([bare])
    default, nothing = cst.MaybeSentinel.DEFAULT, cst.SimpleWhitespace("")
    around = {"leading_lines": (), "comma": default, "semicolon": default, "whitespace_after_arg": nothing}
    node = node.with_changes(**{name: value for name, value in around.items() if hasattr(node, name)})
    try:
        return index.module.code_for_node(node).strip()
    except Exception:  # some nodes cannot be printed on their own
        return ""


def at(index: Index, code: str, *types: type[cst.CSTNode]) -> cst.CSTNode:
    """The outermost node with this code (of these types); of a compound statement its beginning is enough."""
    for node in walk(index.module):
        if isinstance(node, types or cst.CSTNode) and not isinstance(node, (cst.Module, cst.IndentedBlock)):
            found = code_of(index, node)
            if found == code or (isinstance(node, (cst.BaseCompoundStatement, cst.Else)) and found.startswith(code)):
                return node
    raise AssertionError(f"no {code!r}")


def edited(text: str, *changes: Callable[[Index, Edits], None]) -> str:
    index = Index.parse(text)
    edits = Edits(index)
    for change in changes:
        change(index, edits)
    result = edits.apply(index.module).code
    ast.parse(result)
    return result


def remove(code: str, *types: type[cst.CSTNode]) -> Callable[[Index, Edits], None]:
    return lambda index, edits: edits.remove(at(index, code, *types))


def unwrap(code: str) -> Callable[[Index, Edits], None]:
    def change(index: Index, edits: Edits) -> None:
        node = at(index, code, cst.BaseCompoundStatement)
        assert isinstance(node, cst.BaseCompoundStatement)
        edits.unwrap(node)

    return change


def replace(code: str, new: str, *types: type[cst.CSTNode]) -> Callable[[Index, Edits], None]:
    kinds = types or (cst.BaseExpression,)
    return lambda index, edits: edits.replace(at(index, code, *kinds), cst.parse_expression(new))


def many(code: str, new: Callable[[cst.CSTNode], list[cst.CSTNode]], *types: type[cst.CSTNode]):  # type: ignore[no-untyped-def]
    def change(index: Index, edits: Edits) -> None:
        node = at(index, code, *types)
        edits.replace_many(node, new(node))

    return change


BLOCK = dedent(
    """\
    # header

    import a

    # about b
    import b
    def f():  # keep


        # about x
        x = 1  # trails x

        # two
        y = 2; z = 3  # trails both

        if x:
            # only
            y
        # about z
        w = 4
        # footer
    # end
    """
)


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("import a", "import a\n\n", ""),
        ("import b", "import b\n", ""),
        ("x = 1", "    # about x\n    x = 1  # trails x\n\n", ""),
        ("y = 2", "y = 2; z", "z"),
        ("z = 3", "; z = 3", ""),
        ("y", "        # only\n        y\n", "        pass\n"),
        ("w = 4", "    # about z\n    w = 4\n", ""),
    ],
)
def test_removing_a_statement_keeps_the_comments_of_others(code: str, old: str, new: str) -> None:
    assert BLOCK.count(old) == 1
    change = remove(code, cst.BaseSmallStatement) if code == "y" else remove(code)
    assert edited(BLOCK, change) == BLOCK.replace(old, new)


def test_a_moved_statement_takes_the_lines_above_along() -> None:
    """One of a line, and a block; what is above others stays there."""
    code = "x = 0\n# of a\na = 1\n\n# of b\nb = 2\n\n# of the loop\nfor i in c:\n    pass\n# of d\nd = 3\n"
    index = Index.parse(code)
    _, first, _, loop, last = index.module.body
    edits = Edits(index)
    for node in (first, loop):
        edits.move(node)
    edits.replace_many(last, [last, loop, first])
    moved = "x = 0\n\n# of b\nb = 2\n# of d\nd = 3\n\n# of the loop\nfor i in c:\n    pass\n# of a\na = 1\n"
    assert edits.apply(index.module).code == moved


def test_removing_by_line_or_by_statement_is_the_same() -> None:
    def by_line(index: Index, edits: Edits) -> None:
        node = index.parent(at(index, "x = 1", cst.Assign))
        assert isinstance(node, cst.SimpleStatementLine)
        edits.remove(node)

    assert edited(BLOCK, by_line) == edited(BLOCK, remove("x = 1", cst.Assign))


def test_comments_of_nothing_survive_when_everything_goes() -> None:
    text = "def f():\n    # one\n    a\n\n    # two\n    b\n    # three\n\nx\n"
    assert edited(text, remove("a", cst.Expr), remove("b", cst.Expr)) == ("def f():\n    # three\n    pass\n\nx\n")


@pytest.mark.parametrize(
    ("text", "gone", "result"),
    [
        ("a\n\nb\n\nc\n", "b", "a\n\nc\n"),
        ("a\n\nb\nc\n", "b", "a\n\nc\n"),
        ("a\nb\n\nc\n", "b", "a\n\nc\n"),
        ("a\n\n\n\nb\n\nc\n", "b", "a\n\n\n\nc\n"),
        ("a\n\nb\n", "b", "a\n"),
        ("a\n\nb\n", "a", "b\n"),
        ("\n\na\n\n\n\nb\n", "a", "\n\nb\n"),
        ("a\n\n# c\n\nb\n\n# d\n", "b", "a\n\n# c\n\n# d\n"),
        ("if x:\n    a\n\n    b\ny\n", "a", "if x:\n    b\ny\n"),
        ("if x:\n    a\n\n    b\n\ny\n", "b", "if x:\n    a\n\ny\n"),
        ("if x: a; b\n", "a", "if x: b\n"),
        ("if x: a; b\n", "b", "if x: a\n"),
        ("if x: a\n", "a", "if x: pass\n"),
        ("a; b;\n", "b", "a;\n"),
        ("a ; b ; c\n", "b", "a ; c\n"),
        ("a\r\n\r\n# c\r\nb\r\nc\r\n", "b", "a\r\n\r\n# c\r\nc\r\n"),
        ("a\nb", "b", "a"),
        ("class C:\n    a\n", "a", "class C:\n    pass\n"),
    ],
)
def test_blank_lines_and_small_statements(text: str, gone: str, result: str) -> None:
    assert edited(text, remove(gone, cst.Expr)) == result


@pytest.mark.parametrize(
    ("text", "gone", "result"),
    [
        ("f(a, b, c)", "a", "f(b, c)"),
        ("f(a, b, c)", "b", "f(a, c)"),
        ("f(a, b, c)", "c", "f(a, b)"),
        ("f(a, b, )", "b", "f(a, )"),
        ("f(a)", "a", "f()"),
        ("f( a, b )", "b", "f( a )"),
        ("f(\n    a,\n    b,\n    c,\n)", "a", "f(\n    b,\n    c,\n)"),
        ("f(\n    a,\n    b,\n    c,\n)", "b", "f(\n    a,\n    c,\n)"),
        ("f(\n    a,\n    b,\n    c,\n)", "c", "f(\n    a,\n    b,\n)"),
        ("f(\n    a,\n    b,\n    c\n)", "c", "f(\n    a,\n    b\n)"),
        ("f(\n    a,\n)", "a", "f()"),
        ("f(\n    a, b,\n    c, d\n)", "c", "f(\n    a, b,\n    d\n)"),
        ("f(\n    a, b,\n    c, d\n)", "b", "f(\n    a,\n    c, d\n)"),
        ("f(\n    a, b,\n    c, d\n)", "d", "f(\n    a, b,\n    c\n)"),
        ("f(a,\n  b,\n  c)", "a", "f(b,\n  c)"),
        ("f(a,\n  b,\n  c)", "b", "f(a,\n  c)"),
        ("f(a,\n  b,\n  c)", "c", "f(a,\n  b)"),
        ("f(\n    a,  # A\n    # on b\n    b,  # B\n    # on c\n    c,  # C\n    # end\n)", "b",
         "f(\n    a,  # A\n    # on c\n    c,  # C\n    # end\n)"),
        ("f(\n    a,  # A\n    # on b\n    b,  # B\n    # on c\n    c,  # C\n    # end\n)", "c",
         "f(\n    a,  # A\n    # on b\n    b,  # B\n    # end\n)"),
        ("f(  # open\n    # on a\n    a,  # A\n    b,\n)", "a", "f(  # open\n    b,\n)"),
        ("f(\n    # section\n\n    # on a\n    a,\n    b,\n)", "a", "f(\n    # section\n\n    b,\n)"),
        ("f(a,  # A\n  b)", "b", "f(a  # A\n  )"),
        ("f(a,  # A\n  # on b\n  b)", "a", "f(\n  # on b\n  b)"),
        ("[a, b]", "a", "[b]"),
        ("[\n    a,\n    b,\n]", "b", "[\n    a,\n]"),
        ("[\n    a,\n    b\n]", "b", "[\n    a\n]"),
        ("[a]", "a", "[]"),
        ("(a, b)", "b", "(a,)"),
        ("(a, b)", "a", "(b,)"),
        ("(a, b, c)", "c", "(a, b)"),
        ("{a, b}", "b", "{a}"),
        ("x[a, b]", "a", "x[b]"),
        ("x[a, b]", "b", "x[a]"),
        ("x[\n    a,\n    b,\n]", "b", "x[\n    a,\n]"),
        ("x[\n    a,\n    b\n]", "b", "x[\n    a\n]"),
    ],
)  # fmt: skip
def test_removing_between_commas(text: str, gone: str, result: str) -> None:
    types = (cst.Arg, cst.Element, cst.SubscriptElement)
    assert edited(text + "\n", remove(gone, *types)) == result + "\n"


def test_removing_a_dict_entry_and_an_import_and_a_with_item() -> None:
    assert edited('{\n    "a": 1,\n    **b,\n}\n', remove('"a": 1')) == "{\n    **b,\n}\n"
    assert edited("from x import (\n  a,\n  b,\n)\n", remove("b", cst.ImportAlias)) == "from x import (\n  a,\n)\n"
    assert edited("import a, b\n", remove("a", cst.ImportAlias)) == "import b\n"
    assert edited("with a as x, b: pass\n", remove("b", cst.WithItem)) == "with a as x: pass\n"
    assert edited("with (\n    a,\n    b,\n): pass\n", remove("a", cst.WithItem)) == "with (\n    b,\n): pass\n"


SIGNATURE = dedent(
    """\
    def f(
        A: t,  # input
        # scratch
        workspace_1: t,
        workspace_2: t,  # trails
        # result
        C: t,
    ):
        pass
    """
)


@pytest.mark.parametrize(
    ("gone", "lines"),
    [
        (["workspace_1"], ["    # scratch\n", "    workspace_1: t,\n"]),
        (["workspace_2"], ["    workspace_2: t,  # trails\n"]),
        (
            ["workspace_1", "workspace_2"],
            ["    # scratch\n", "    workspace_1: t,\n", "    workspace_2: t,  # trails\n"],
        ),
        (["C"], ["    # result\n", "    C: t,\n"]),
        (["A"], ["    A: t,  # input\n"]),
    ],
)
def test_removing_parameters(gone: list[str], lines: list[str]) -> None:
    expected = SIGNATURE
    for line in lines:
        expected = expected.replace(line, "")
    assert edited(SIGNATURE, *(remove(name + ": t") for name in gone)) == expected


@pytest.mark.parametrize(
    ("text", "gone", "result"),
    [
        ("(a, b)", ["b"], "(a)"),
        ("(a, b)", ["a", "b"], "()"),
        ("(\n    a,\n    b,\n)", ["a", "b"], "()"),
        ("(a, *, b=1)", ["b=1"], "(a)"),
        ("(a, *, b=1, c)", ["b=1"], "(a, *, c)"),
        ("(a, /, b)", ["a"], "(b)"),
        ("(a, *args, b, **kw)", ["b"], "(a, *args, **kw)"),
        ("(a, *args, b, **kw)", ["*args"], "(a, *, b, **kw)"),
        ("(a, *args, b, **kw)", ["**kw"], "(a, *args, b)"),
        ("(a,\n      b: int = 3,\n      c=4)", ["c=4"], "(a,\n      b: int = 3)"),
        ("(a,\n      b: int = 3,\n      c=4)", ["b: int = 3"], "(a,\n      c=4)"),
    ],
)
def test_removing_odd_parameters(text: str, gone: list[str], result: str) -> None:
    assert edited(f"def f{text}: pass\n", *(remove(code, cst.Param) for code in gone)) == f"def f{result}: pass\n"


def test_decorators() -> None:
    text = "# top\n@a\n# on b\n@b\n# on def\ndef f(): pass\n"
    assert edited(text, remove("@b", cst.Decorator)) == "# top\n@a\n# on b\n# on def\ndef f(): pass\n"
    assert edited(text, remove("@a", cst.Decorator)) == "# top\n# on b\n@b\n# on def\ndef f(): pass\n"


@pytest.mark.parametrize(
    ("text", "new", "result"),
    [
        ("f(a)", "b", "f(a, b)"),
        ("f(a,)", "b", "f(a, b,)"),
        ("f(\n    x,\n    a,\n)", "b", "f(\n    x,\n    a,\n    b,\n)"),
        ("f(\n    x,\n    a  # A\n)", "b", "f(\n    x,\n    a,  # A\n    b\n)"),
        ("f(\n    a,  # A\n)", "b", "f(\n    a,  # A\n    b,\n)"),
        ("f(a,\n  x)", "b", "f(a,\n  b,\n  x)"),
        ("f(x,\n  a)", "b", "f(x,\n  a,\n  b)"),
        ("f(\n    a, x\n)", "b", "f(\n    a, b, x\n)"),
    ],
)
def test_appending_an_argument(text: str, new: str, result: str) -> None:
    change = many("a", lambda node: [node, cst.Arg(cst.Name(new))], cst.Arg)
    assert edited(text + "\n", change) == result + "\n"


def test_prepending_a_parameter_and_a_subscript() -> None:
    assert edited("def f(a): pass\n", many("a", lambda n: [cst.Param(cst.Name("z")), n], cst.Param)) == (
        "def f(z, a): pass\n"
    )
    new = cst.SubscriptElement(cst.Index(cst.Name("z")))
    assert edited("x[a]\n", many("a", lambda n: [new, n], cst.SubscriptElement)) == "x[z, a]\n"


def test_replacing_an_element_keeps_its_comma_and_comment() -> None:
    text = "f(\n    a,  # A\n    b\n)\n"
    for old in "ab":
        change = many(old, lambda n: [cst.Arg(cst.Name("z"))], cst.Arg)
        assert edited(text, change) == text.replace(f"    {old}", "    z")


def test_unwrap_keeps_all_comments_and_edits_inside() -> None:
    text = dedent(
        """\
        def f():
            x

            # cube
            with T.Scope("C"):  # header
                # first
                a  # trails

                sync()
                g(b,
                  c)
                # last
        # code that was switched off
                # very last
            # after
            y
        """
    )
    assert edited(text, unwrap("with"), remove("sync()", cst.Expr), replace("b", "z")) == dedent(
        """\
        def f():
            x

            # cube
            # header
            # first
            a  # trails

            g(z,
              c)
            # last
        # code that was switched off
            # very last
            # after
            y
        """
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("with a: b; c\nd\n", "b; c\nd\n"),
        ("if z:\n    with a:\n        sync()\n", "if z:\n    pass\n"),
        ("with a:\n    sync()\n    # last\nd\n", "# last\nd\n"),
        ("with a:\n    sync()\n", ""),
        ("with a:\n    with a:\n        b\n", "b\n"),
    ],
)
def test_unwrap_corners(text: str, result: str) -> None:
    def change(index: Index, edits: Edits) -> None:
        for node in index.statements:
            if isinstance(node, cst.With):
                edits.unwrap(node)
            elif index.module.code_for_node(node) == "sync()":
                edits.remove(node)

    assert edited(text, change) == result


def test_unwrapping_branches_is_refused() -> None:
    for text in ("if a: b\nelse: c\n", "try: a\nexcept: b\n"):
        with pytest.raises(EditError):
            edited(text, lambda index, edits: edits.unwrap(index.statements[0]))  # type: ignore[arg-type]


def test_one_statement_becomes_several() -> None:
    text = "if x:\n\n    # about\n    a = 1  # trails\n    b\n"
    line, loop = cst.parse_statement("p = 1"), cst.parse_statement("for q in r:\n    s\n")
    small = cst.parse_statement("t")
    assert isinstance(small, cst.SimpleStatementLine)
    assert edited(text, many("a = 1", lambda n: [line, loop, small.body[0]], cst.Assign)) == (
        "if x:\n\n    # about\n    p = 1  # trails\n    for q in r:\n        s\n    t\n    b\n"
    )
    assert edited(text, many("a = 1", lambda n: [line, n], cst.Assign)) == (
        "if x:\n\n    # about\n    p = 1\n    a = 1  # trails\n    b\n"
    )
    assert edited(text, many("a = 1", lambda n: [loop], cst.Assign)) == (
        "if x:\n\n    # about\n    # trails\n    for q in r:\n        s\n    b\n"
    )
    assert edited("a; b; c\n", many("b", lambda n: [small.body[0], n], cst.Expr)) == "a; t; b; c\n"
    assert edited("a; b; c\n", many("b", lambda n: [loop], cst.Expr)) == "a\nfor q in r:\n    s\nc\n"


def test_a_line_that_keeps_its_leading_lines_does_not_get_them_twice() -> None:
    def change(index: Index, edits: Edits) -> None:
        line = index.module.body[1]
        edits.replace_many(line, [cst.parse_statement("new"), line])

    assert edited("a\n# on b\nb\n", change) == "a\nnew\n# on b\nb\n"


def test_optional_parts() -> None:
    assert edited("if a:\n    b\nelse:\n    c\n", remove("else", cst.Else)) == "if a:\n    b\n"
    assert edited("with a as b: pass\n", remove("as b", cst.AsName)) == "with a: pass\n"
    assert edited("x[a:b]\n", remove("a", cst.Name)) == "x[:b]\n"


def test_only_ancestors_are_rebuilt() -> None:
    index = Index.parse("def f(a, b):\n    x = 1\n    g(c, d)\ny\n")
    edits = Edits(index)
    edits.replace(at(index, "c", cst.Name), cst.Name("z"))
    result = edits.apply(index.module)
    kept = {id(node) for node in walk(index.module)}
    new = [type(node).__name__ for node in walk(result) if id(node) not in kept]
    assert new == ["Module", "FunctionDef", "IndentedBlock", "SimpleStatementLine", "Expr", "Call", "Arg", "Name"]


def test_a_node_never_stands_in_a_tree_twice() -> None:
    index = Index.parse("a\nb\nc\nd + e\n")
    edits = Edits(index)
    shared = cst.parse_expression("s + t")
    edits.replace(at(index, "a", cst.Name), shared)
    edits.replace(at(index, "b", cst.Name), cst.Call(shared))  # type: ignore[arg-type]
    edits.replace(at(index, "c", cst.Name), at(index, "d + e", cst.BinaryOperation))
    result = edits.apply(index.module)
    assert result.code == "s + t\ns + t()\nd + e\nd + e\n".replace("s + t()", "s + t()")
    nodes = [id(node) for node in walk(result)]
    assert len(nodes) == len(set(nodes))
    assert index.module.body[3] is result.body[3]


def test_moved_nodes_keep_their_identity() -> None:
    index = Index.parse("f(a + b)\n")
    edits, inner = Edits(index), at(index, "a + b", cst.BinaryOperation)
    assert isinstance(inner, cst.BinaryOperation)
    edits.replace(at(index, "f(a + b)", cst.Call), inner)
    assert inner in Index.of(edits.apply(index.module))


def test_contradictions() -> None:
    index = Index.parse("f(a)\ng(b)\n")
    call, name = at(index, "f(a)", cst.Call), at(index, "a", cst.Name)
    edits = Edits(index)
    edits.remove(index.statements[0])
    edits.remove(index.statements[0])
    edits.replace(name, cst.Name("z"))
    with pytest.raises(EditError, match="Name lies inside a Expr"):
        edits.apply(index.module)
    edits = Edits(index)
    edits.replace(call, name)
    with pytest.raises(EditError, match="two edits"):
        edits.remove(call)
    with pytest.raises(EditError, match="not a node of this tree"):
        edits.remove(cst.Name("a"))
    with pytest.raises(EditError, match="another tree"):
        edits.apply(cst.parse_module("f(a)\n"))


@pytest.mark.parametrize(
    ("text", "gone", "kind"),
    [("x[a]\n", "a", cst.SubscriptElement), ("import a\n", "a", cst.ImportAlias), ("f(a)\n", "f", cst.Name)],
)
def test_removing_what_must_be_there(text: str, gone: str, kind: type[cst.CSTNode]) -> None:
    with pytest.raises(EditError):
        edited(text, remove(gone, kind))


def test_no_edits_no_new_tree() -> None:
    index = Index.parse("a\n")
    assert not Edits(index)
    assert Edits(index).apply(index.module) is index.module


@st.composite
def programs(draw: st.DrawFn, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        lines += [""] * draw(st.integers(0, 2))
        lines += [f"# c{draw(st.integers(0, 999))}"] * draw(st.integers(0, 1))
        if depth < 2 and draw(st.booleans()):
            lines += ["with x:", *("    " + line if line else "" for line in draw(programs(depth + 1)))]
        else:
            line = draw(st.sampled_from(["a()", "b()", "a(); b()", "c(1,\n  2)"]))
            lines.append(line.replace("\n", "\n" + "    " * depth))
    return lines


@settings(max_examples=150)
@given(programs(), st.randoms(use_true_random=False))
def test_any_removal_keeps_comments_and_the_other_statements(lines: list[str], random) -> None:  # type: ignore[no-untyped-def]
    text = "\n".join(lines) + "\n"
    index = Index.parse(text)
    edits = Edits(index)
    small = [s for s in index.statements if isinstance(s, cst.BaseSmallStatement)]
    gone = {id(s) for s in small if random.random() < 0.5}
    for statement in index.statements:
        if id(statement) in gone:
            edits.remove(statement)
        elif isinstance(statement, cst.With) and random.random() < 0.5:
            edits.unwrap(statement)
    result = edits.apply(index.module).code
    ast.parse(result)

    def bare(nodes: list[cst.BaseSmallStatement]) -> list[str]:
        return [ast.unparse(ast.parse(cst.Module([]).code_for_node(node).rstrip("; "))) for node in nodes]

    left = [s for s in Index.parse(result).statements if isinstance(s, cst.BaseSmallStatement)]
    assert bare([s for s in left if not isinstance(s, cst.Pass)]) == bare([s for s in small if id(s) not in gone])
    comments = [line.strip() for line in lines if line.strip().startswith("#")]
    kept = [line.strip() for line in result.split("\n") if line.strip().startswith("#")]
    in_order = iter(comments)
    assert all(comment in in_order for comment in kept)
    assert gone or kept == comments
    for statement in index.module.body:
        if isinstance(statement, cst.SimpleStatementLine) and not gone >= {id(small) for small in statement.body}:
            own = [line.comment.value for line in statement.leading_lines if line.comment]
            assert not Counter(own) - Counter(kept)

    def longest(code: str) -> int:
        marks = "".join("x" if line.strip() else " " for line in code.rstrip("\n").split("\n"))
        return max(len(run) for run in marks.split("x"))

    assert not left or longest(result) <= longest(text)


@pytest.mark.parametrize(
    ("text", "gone", "result"),
    [
        ("# caption\na\nb\n", ["a"], "# caption\nb\n"),  # it may speak of both
        ("x\n# caption\na\n\nb\n", ["a"], "x\n\nb\n"),
        ("x\n# caption\na\n# next\nb\n", ["a"], "x\n# next\nb\n"),
        ("x\n\n# part\n\n# caption\n# of two lines\na\nb\n\nc\n", ["a", "b"], "x\n\n# part\n\nc\n"),
        ("# caption\na\nb\n\nc\n", ["b"], "# caption\na\n\nc\n"),
        ("x\n# TODO: caption\na\n\nb\n", ["a"], "x\n# TODO: caption\n\nb\n"),
        ("x\n# tl2npu: ignore[TL801]\na\n\nb\n", ["a"], "x\n# tl2npu: ignore[TL801]\n\nb\n"),
        ("x\n# caption\na\n", ["a"], "x\n"),
    ],
)
def test_a_comment_about_removed_statements_only_goes_with_them(text: str, gone: list[str], result: str) -> None:
    index = Index.parse(text)
    edits = Edits(index)
    for line in index.module.body:
        if isinstance(line, cst.SimpleStatementLine) and index.module.code_for_node(line.body[0]) in gone:
            edits.remove(line)
    assert edits.apply(index.module).code == result


def changed(source: str, change: Callable[[Edits, Index], None]) -> str:
    index = Index.parse(source)
    edits = Edits(index)
    change(edits, index)
    result = edits.apply(index.module)
    assert len({id(node) for node in walk(result)}) == len(list(walk(result)))
    return result.code


def stmt(text: str) -> cst.SimpleStatementLine:
    return cst.ensure_type(cst.parse_module(text).body[0], cst.SimpleStatementLine)


LOOP = "a\n# all\nfor i in x:\n    f(i)  # one\n    g(i)\n"


def test_what_stands_beside_a_node_leaves_it_open_to_other_edits() -> None:
    """The order of the calls, and which of the edits comes first, are of no matter to the node itself."""

    def change(edits: Edits, index: Index) -> None:
        loop, call = index.module.body[1], at(index, "f(i)", cst.Call)
        edits.replace_many(loop, [loop, stmt("after(1)")])
        edits.replace(at(index, "x", cst.Name), cst.Name("y"))
        edits.replace_many(loop, [stmt("before(1)"), loop, stmt("after(2)")])
        edits.replace(call.func, cst.Name("h"))
        line = index.parent(at(index, "f(i)", cst.Expr))
        edits.replace_many(line, [stmt("inside()"), line])
        edits.replace_many(loop, [stmt("before(2)"), loop])

    loop = "# all\nfor i in y:\n    inside()\n    h(i)  # one\n    g(i)\n"
    assert changed(LOOP, change) == f"a\nbefore(1)\nbefore(2)\n{loop}after(1)\nafter(2)\n"


def test_what_stands_beside_a_node_stays_if_the_node_does_not() -> None:
    def beside(edits: Edits, index: Index) -> None:
        loop = index.module.body[1]
        edits.replace_many(loop, [stmt("above()"), loop, stmt("below()")])

    def removed(edits: Edits, index: Index) -> None:
        beside(edits, index)
        edits.remove(index.module.body[1])

    def replaced(edits: Edits, index: Index) -> None:
        edits.replace(index.module.body[1], stmt("z()"))
        beside(edits, index)

    def unwrapped(edits: Edits, index: Index) -> None:
        beside(edits, index)
        edits.unwrap(cst.ensure_type(index.module.body[1], cst.For))
        edits.replace(at(index, "g(i)", cst.Call).func, cst.Name("h"))

    def moved(edits: Edits, index: Index) -> None:
        beside(edits, index)
        edits.move(index.module.body[1])

    assert changed(LOOP, removed) == "a\n# all\nabove()\nbelow()\n"
    assert changed(LOOP, replaced) == "a\n# all\nabove()\nz()\nbelow()\n"
    assert changed(LOOP, unwrapped) == "a\nabove()\n# all\nf(i)  # one\nh(i)\nbelow()\n"
    assert changed(LOOP, moved) == "a\nabove()\nbelow()\n"


def test_small_statements_and_elements_of_sequences_too() -> None:
    def line(edits: Edits, index: Index) -> None:
        small = at(index, "f(i)", cst.Expr)
        edits.replace_many(small, [stmt("z()"), small])
        edits.replace(at(index, "f(i)", cst.Call).func, cst.Name("h"))

    def arguments(edits: Edits, index: Index) -> None:
        call = at(index, "f(a)", cst.Call)
        edits.replace_many(call.args[0], [cst.Arg(cst.Name("z")), call.args[0]])
        edits.replace(call.args[0].value, cst.Name("b"))

    assert changed(LOOP, line) == "a\n# all\nfor i in x:\n    z()\n    h(i)  # one\n    g(i)\n"
    assert changed("f(a)\n", arguments) == "f(z, b)\n"
