"""Text for symbolic integers: parsed again it has the same value."""

from __future__ import annotations

import libcst as cst
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.kernel.test_symbolic import Tree, built, trees
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.symbolic import Sym, const, opaque, var
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.source.index import Index
from tl2npu.source.names import Names

EVALUATOR = Evaluator(Names(Index.parse("")))
values = st.fixed_dictionaries({name: st.integers(-12, 12) for name in "abc"})


def again(text: str) -> Sym:
    return EVALUATOR.sym(cst.parse_expression(text), Env())


@given(trees(), values)
def test_rendered_text_has_the_value(tree: Tree, at: dict[str, int]) -> None:
    sym = built(tree)
    text = render(sym)
    expected = sym.evaluate(at)
    assume(expected is not None)
    assert eval(text, {}, dict(at)) == expected


@given(trees())
def test_rendered_text_reads_back_as_the_same_normal_form(tree: Tree) -> None:
    sym = built(tree)
    assert again(render(sym)) == sym


@pytest.mark.parametrize(
    ("sym", "text"),
    [
        (const(0), "0"),
        (const(-3), "-3"),
        (var("n"), "n"),
        (-var("n"), "-n"),
        (var("n") * 2 + 1, "n * 2 + 1"),
        (var("cid@4") * 32, "cid * 32"),
        (var("cfg.rows"), "cfg.rows"),
        ((var("n") + 1) // 2, "((n + 1) // 2)"),
        (opaque("load ix", const(3)), "ix[3]"),
    ],
)
def test_how_it_looks(sym: Sym, text: str) -> None:
    assert render(sym) == text


@pytest.mark.parametrize("sym", [opaque("text f(n)", var("n")), opaque("Equal", var("n"), const(0)), var("A.shape[0]")])
def test_what_has_no_text(sym: Sym) -> None:
    with pytest.raises(Unrenderable):
        render(sym)
