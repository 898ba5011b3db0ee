"""Rewrites of expressions keep their value and leave the rest of the text alone."""

from __future__ import annotations

import libcst as cst
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.passes.expressions import NAMES, sums, texts, value
from tl2npu.kernel.expressions import code
from tl2npu.passes.writing.fold import integer, map_expression, parenthesised, put_numbers, rebuild

values = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})
OPERATORS = {"+": cst.Add, "-": cst.Subtract, "*": cst.Multiply, "//": cst.FloorDivide, "%": cst.Modulo}


def parsed(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text)


@given(texts, st.integers(0, 1), values)
def test_putting_a_number_for_a_name_is_substitution(text: str, number: int, known: dict[str, int]) -> None:
    expected = value(text, **{**known, "vid": number})
    assume(expected is not None)
    assert value(code(put_numbers(parsed(text), {"vid": number})), **{**known, "vid": number}) == expected


@given(texts, values)
def test_putting_several_numbers(text: str, known: dict[str, int]) -> None:
    expected = value(text, **{**known, "vid": 0, "h": 1})
    assume(expected is not None)
    assert value(code(put_numbers(parsed(text), {"vid": 0, "h": 1})), **{**known, "vid": 0, "h": 1}) == expected


@given(texts)
def test_text_without_the_name_stays_as_it_is(text: str) -> None:
    node = parsed(text)
    assert put_numbers(node, {"absent": 0}) is node or code(put_numbers(node, {"absent": 0})) == text
    if "vid" not in text:
        assert code(put_numbers(node, {"vid": 0})) == text


@given(sums, st.sampled_from(list(OPERATORS)))
def test_the_untouched_side_keeps_its_text(text: str, sign: str) -> None:
    """A change on the right leaves the text on the left alone."""
    assume("vid" not in text)
    whole = f"(n {sign} ({text}))"
    assert code(put_numbers(parsed(f"{whole}+ vid"), {"vid": 1})) == f"{whole}+ 1"


@pytest.mark.parametrize("text", ["0 + t[0]", "1 * t[n] - 0", "(0 + t[n : n + 1])", "f(0 + t[1])"])
def test_subscripts_without_the_name_stay_as_they_are(text: str) -> None:
    assert code(put_numbers(parsed(text), {"vid": 0})) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("row + vid * h", "row"),
        ("vid * h + row", "row"),
        ("row + h * vid // 2", "row"),
        ("(row + vid * h) * 2", "row * 2"),
        ("row+vid*h", "row"),
        ("A[row + vid * h, 0]", "A[row, 0]"),
        ("f(vid * h, n)", "f(0, n)"),
        ("row - vid * h", "row"),
        ("n - (row - vid * h)", "n - row"),
        ("(vid + 1) * h", "h"),
        ("row + (vid + 1) * h", "row + h"),
        ("(vid * h) >> 1", "0"),
        ("2 * row + 0", "2 * row + 0"),
    ],
)
def test_neutral_elements_go(text: str, expected: str) -> None:
    found = code(put_numbers(parsed(text), {"vid": 0}))
    assert found.replace("(row)", "row") == expected


@given(texts, texts, texts, st.sampled_from(list(OPERATORS)), values)
def test_rebuild_puts_parentheses_where_the_grammar_needs_them(
    old: str, left: str, right: str, sign: str, known: dict[str, int]
) -> None:
    node = cst.BinaryOperation(parenthesised(parsed(old)), OPERATORS[sign](), parenthesised(parsed(old)))
    expected = value(f"({left}) {sign} ({right})", **known)
    assume(expected is not None)
    assert value(code(rebuild(node, parsed(left), parsed(right))), **known) == expected


@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("inner", OPERATORS)
def test_rebuild_with_every_pair_of_operators(outer: str, inner: str) -> None:
    node = cst.BinaryOperation(cst.Name("a"), OPERATORS[outer](), cst.Name("b"))
    operand, known = f"h {inner} 7", {"h": 23, "n": 5}
    for left, right in ((operand, "n"), ("n", operand), (operand, operand)):
        assert value(code(rebuild(node, parsed(left), parsed(right))), **known) == value(
            f"({left}) {outer} ({right})", **known
        )


@given(sums, values)
def test_map_expression_replaces_a_name_by_a_sum(text: str, known: dict[str, int]) -> None:
    """The replacement has no parentheses of its own; the result must mean ``(n + 1)`` wherever it is put."""

    def change(node: cst.BaseExpression) -> cst.BaseExpression | None:
        return parsed("n + 1") if isinstance(node, cst.Name) and node.value == "h" else None

    expected = value(text, **{**known, "h": known["n"] + 1})
    assume(expected is not None)
    assert value(code(map_expression(parsed(text), change)), **{**known, "h": known["n"] + 1}) == expected


@given(texts)
def test_map_expression_without_a_change_is_the_same_node(text: str) -> None:
    node = parsed(text)
    assert map_expression(node, lambda _: None) is node


def test_integers() -> None:
    assert integer(parsed("0x1_0")) == 16
    assert integer(parsed("h")) is None
    assert integer(parsed("1.0")) is None
