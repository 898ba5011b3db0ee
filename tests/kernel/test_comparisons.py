"""Comparisons as terms mean what the text means, whatever side the number stands on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.kernel.comparisons import OPERATORS, compared, negated
from tl2npu.kernel.symbolic import Opaque, Sym, const, var

SMALL = st.integers(-3, 3)


def holds(condition: Sym, value: int) -> bool:
    """Whether a comparison is true where ``a`` has a value."""
    atom = condition.atom
    assert isinstance(atom, Opaque)
    left, right = (arg.evaluate({"a": value}) for arg in atom.args)
    assert left is not None
    assert right is not None
    return OPERATORS[atom.head](left, right)


@pytest.mark.parametrize("head", OPERATORS)
@given(number=SMALL, value=SMALL)
def test_a_number_may_stand_on_either_side(head: str, number: int, value: int) -> None:
    assert holds(compared(head, var("a"), const(number)), value) == OPERATORS[head](value, number)
    assert holds(compared(head, const(number), var("a")), value) == OPERATORS[head](number, value)


@pytest.mark.parametrize("head", OPERATORS)
def test_both_spellings_are_one_term(head: str) -> None:
    swapped = head.replace("Less", "@").replace("Greater", "Less").replace("@", "Greater")
    assert compared(head, const(2), var("a")) == compared(swapped, var("a"), const(2))


@pytest.mark.parametrize("head", ["Equal", "NotEqual"])
@given(number=SMALL, value=SMALL)
def test_the_opposite_of_an_equation(head: str, number: int, value: int) -> None:
    condition = compared(head, var("a"), const(number))
    assert holds(negated(condition), value) != holds(condition, value)
    assert negated(negated(condition)) == condition


@pytest.mark.parametrize("head", ["LessThan", "GreaterThanEqual"])
def test_what_has_no_opposite(head: str) -> None:
    """``not x < y`` holds for NaN, ``x >= y`` does not."""
    condition = compared(head, var("a"), const(1))
    assert isinstance(negated(condition).atom, Opaque)
    assert negated(condition) != compared("GreaterThanEqual", var("a"), const(1))
