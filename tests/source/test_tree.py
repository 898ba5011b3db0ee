from __future__ import annotations

import libcst as cst
import pytest

from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.source import tree
from tl2npu.source.tree import (
    argument,
    calls_in,
    children,
    mentioned,
    names_in,
    nodes_of,
    one_file,
    remembered,
    replaced,
    subclasses_of,
    walk,
    with_children,
)

TEXT = """\
@jit(a)
def f(x: T.Tensor((n, 2), d) = g(1)):
    h(x, k=[i(y) for y in z]); j(h.m(1)(2))
    if x:
        return lambda q: p(q.r)
"""


def plain_walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(below for child in children(node) for below in plain_walk(child))]


def test_walks_see_every_node_in_order_each_time() -> None:
    module = cst.parse_module(TEXT)
    for _ in range(2):
        found = list(walk(module))
        assert [id(node) for node in found] == [id(node) for node in plain_walk(module)]
        calls = [node for node in found if isinstance(node, cst.Call)]
        assert [id(call) for call in calls_in(module)] == [id(call) for call in calls]
        assert [name.value for name in names_in(module.body[0].body)] == list("hxiyyzjhxqpq")
        for kinds in (
            (cst.Name,),
            (cst.FunctionDef, cst.If),
            (cst.Name, cst.Attribute, cst.If),
            (cst.Module,),
            (cst.For,),
        ):
            wanted = [id(node) for node in found if isinstance(node, kinds)]
            assert [id(node) for node in nodes_of(module, *kinds)] == wanted
        branch = found[0].body[0].body.body[1]
        below = {id(node) for node in plain_walk(branch)}
        assert [id(n) for n in walk(module, {id(branch)})] == [id(n) for n in found if id(n) not in below]


def test_what_is_gathered_follows_an_edit() -> None:
    module = cst.parse_module("def f():\n    if a:\n        b(c)\n        d(e)\n    g(h)\n")
    assert [name.value for name in names_in(module)] == list("fabcdegh")
    branch = module.body[0].body.body[0]
    changed = module.deep_replace(branch.body.body[0], cst.parse_statement("x(y); z()"))
    assert [name.value for name in names_in(changed)] == list("faxyzdegh")
    assert [call.func.value for call in calls_in(changed)] == list("xzdg")
    assert [name.value for name in names_in(module)] == list("fabcdegh")


def test_what_is_remembered_is_worked_out_once_and_forgotten() -> None:
    asked: list[cst.CSTNode] = []

    @remembered
    def size(node: cst.CSTNode) -> int:
        asked.append(node)
        return len(children(node))

    node, other = cst.parse_expression("f(a, b)"), cst.parse_expression("f(a, b)")
    assert (size(node), size(node), size(other)) == (3, 3, 3)
    assert asked == [node, other]
    with one_file():
        pass
    assert size(node) == 3
    assert len(asked) == 3


def test_nothing_of_a_file_stays_in_memory() -> None:
    kernel = "import tilelang.language as T\n\n\n@T.prim_func\ndef k(A: T.Tensor((4,), 'float')):\n    f(A)\n"
    migrate_text(kernel, "x.py", Options())
    assert not any(tree._remembered)


def test_tables_of_classes_answer_as_isinstance_does() -> None:
    table = subclasses_of((cst.BaseExpression, cst.Arg))
    for node in walk(cst.parse_module(TEXT)):
        assert table[type(node)] == isinstance(node, (cst.BaseExpression, cst.Arg))
    assert subclasses_of((cst.BaseExpression, cst.Arg)) is table


def test_a_node_is_replaced_and_all_else_stays_the_same_object() -> None:
    module = cst.parse_module("x = f(a, [b, a])\ny = a\n")
    first, second = module.body
    old = nodes_of(first, cst.Name)[-1]
    new = replaced(module, {id(old): cst.parse_expression("g(c)")})
    assert isinstance(new, cst.Module)
    assert new.code == "x = f(a, [b, g(c)])\ny = a\n"
    assert new.body[1] is second
    assert replaced(first, {id(second): old}) is first
    assert with_children(second, lambda child: child) is second


def test_names_below_a_node_as_text() -> None:
    assert mentioned(cst.parse_module("x.y = f(a, k=b)[c]")) == {"x", "f", "a", "b", "c"}


@pytest.mark.parametrize(
    ("call", "found"),
    [("f(1, 2)", "2"), ("f(1, size=3)", "3"), ("f(size=3, *rest)", "3"), ("f(1)", None), ("f(other=2)", None)],
)
def test_an_argument_by_name_or_place(call: str, found: str | None) -> None:
    node = cst.ensure_type(cst.parse_expression(call), cst.Call)
    value = argument(node, "size", 1)
    assert (None if value is None else cst.Module(()).code_for_node(value)) == found
