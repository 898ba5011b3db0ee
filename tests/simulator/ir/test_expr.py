"""Expressions: types, linear forms and bounds against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region, index
from tl2npu.simulator.ir.evaluate import number
from tl2npu.simulator.ir.expr import Binary, Cast, Const, Expr, Load, Var, binary, call, cast
from tl2npu.simulator.ir.interval import interval
from tl2npu.simulator.ir.linear import constant_difference, linear
from tl2npu.simulator.ir.parts import free, rebuild, substitute, walk

X, Y, Z = Var("x"), Var("y"), Var("z")
VARIABLES = (X, Y, Z)
RANGE = range(-3, 4)


def grown(inner: Any) -> Any:
    def joined(op: str) -> Any:
        return st.tuples(inner, inner).map(lambda p: binary(op, *p))

    return st.one_of(
        *(joined(op) for op in "+-*"),
        st.tuples(st.sampled_from(["//", "%"]), inner, st.integers(1, 5)).map(lambda t: binary(*t)),
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda t: call(*t)),
        inner.map(lambda e: cast("int64", e)),
    )


expressions = st.recursive(st.one_of(st.sampled_from(VARIABLES), st.integers(-4, 4)), grown, max_leaves=6)
points = st.tuples(*(st.integers(RANGE[0], RANGE[-1]) for _ in VARIABLES))


def at(value: Any, point: tuple[int, ...]) -> int:
    return number(substitute(value, dict(zip(VARIABLES, point, strict=True))))


@settings(max_examples=200)
@given(expressions, points)
def test_a_linear_form_is_its_expression(value: Any, point: tuple[int, ...]) -> None:
    terms, constant = linear(value)
    assert constant + sum(factor * at(atom, point) for factor, atom in terms.values()) == at(value, point)
    assert all(factor for factor, _ in terms.values())


@settings(max_examples=200)
@given(expressions, expressions)
def test_a_constant_difference_is_one(left: Any, right: Any) -> None:
    found = constant_difference(left, right)
    differences = {at(left, p) - at(right, p) for p in itertools.product((-3, 0, 1, 3), repeat=3)}
    if found is not None:
        assert differences == {found}


def test_constant_differences_that_matter() -> None:
    assert constant_difference((X + 1) * 4 + Y, X * 4 + Y) == 4
    assert constant_difference((X + 1) * Y, X * Y + Y) == 0
    assert constant_difference(X // 2, X // 3) is None
    table = Buffer("t", (8,), "int32", "global")
    assert constant_difference(table[X] + 3, table[X]) == 3
    assert constant_difference(table[X], table[Y]) is None


@settings(max_examples=200)
@given(expressions)
def test_no_value_is_outside_of_the_bounds(value: Any) -> None:
    bounds = interval(value, dict.fromkeys(VARIABLES, (RANGE[0], RANGE[-1])))
    assert bounds is not None
    for point in itertools.product((-3, -1, 0, 2, 3), repeat=3):
        assert bounds[0] <= at(value, point) <= bounds[1]


def test_bounds_that_matter() -> None:
    known = {X: (0, 7), Y: (0, 3)}
    assert interval(X * 16 + Y * 4, known) == (0, 124)
    assert interval(X % 4, known) == (0, 3)
    assert interval(X // 2, known) == (0, 3)
    assert interval((X + 1) * 4 - X * 4, known) == (4, 4)
    assert interval(X + Z, known) is None
    assert interval(call("min", X, 5), known) == (0, 5)


def test_a_narrowing_conversion_is_not_looked_through() -> None:
    for narrow in ("uint8", "int8", "int16", "uint32"):
        converted = cast(narrow, X)
        assert constant_difference(converted, X) is None
        assert interval(converted, {X: (-1, 70000)}) is None
    assert constant_difference(cast("int64", X), X) == 0


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int32", "int32", "int32"),
        ("int32", "int64", "int64"),
        ("int8", "uint8", "uint8"),
        ("uint8", "uint16", "uint16"),
        ("uint32", "int32", "uint32"),
        ("int64", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float32", "float32"),
        ("float8_e4m3fn", "float16", "float16"),
        ("bool", "int32", "int32"),
        ("bool", "float16", "float16"),
    ],
)
def test_promotion(left: str, right: str, expected: str) -> None:
    assert dtypes.promote(left, right) == expected
    assert dtypes.promote(right, left) in (expected, "float16" if expected == "bfloat16" else expected)


def test_numbers_take_the_type_of_their_partner() -> None:
    half = Var("h", "float16")
    assert binary("*", half, 2).dtype == "float16"
    assert binary("*", half, 0.3).dtype == "float32"  # a Python float is one
    assert binary("*", half, cast("float16", 0.3)).dtype == "float16"
    assert call("max", half, 0.0).dtype == "float32"
    assert call("max", half, 0).dtype == "float16"
    assert binary("*", X, 0.5).dtype == "float32"
    assert binary("/", X, Y).dtype == "float32"
    assert binary("<", half, 1).dtype == "bool"
    mixed = binary("+", half, Var("f", "float32"))
    assert mixed.dtype == "float32"
    assert isinstance(mixed.left, Cast)
    assert mixed.left.dtype == "float32"


def test_neutral_elements_vanish() -> None:
    assert binary("+", X, 0) is X
    assert binary("*", X, 1) is X
    assert binary("*", X, 0) == 0
    assert binary("//", X, 1) is X
    assert binary("%", X, 1) == 0
    assert binary("-", 0, X) is not X


def test_conversions_of_constants_are_done_at_once() -> None:
    assert isinstance(cast("float16", 2049), Const)
    third: Any = cast("float32", cast("float16", 1 / 3))
    assert third.value == 0.333251953125
    assert cast("int32", Const(2.7, "float32")).value == 2  # type: ignore[union-attr]
    assert cast("float32", Var("f", "float32")).dtype == "float32"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("x", "y", "quotient", "rest"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (10**18 + 1, 3, 333333333333333333, 2)],
)
def test_truncating_division_of_numbers(x: int, y: int, quotient: int, rest: int) -> None:
    assert call("truncdiv", x, y) == quotient
    assert call("truncmod", x, y) == rest


@given(expressions, points)
def test_substitution_is_evaluation(value: Any, point: tuple[int, ...]) -> None:
    some = substitute(value, {X: point[0]})
    assert X not in free(some)
    assert at(some, point) == at(value, point)


@given(expressions)
def test_rebuilding_without_a_change_gives_the_same(value: Any) -> None:
    assert rebuild(value, lambda e: e) is value


def test_walk_sees_loads_and_their_indices() -> None:
    table, data = Buffer("t", (8,), "int32", "global"), Buffer("d", (8, 8), "float32", "global")
    value = binary("+", data[table[X], Y], 1.0)
    loads = [e.buffer.name for e in walk(value) if isinstance(e, Load)]
    assert loads == ["d", "t"]
    assert free(value) == {X, Y}
    moved = substitute(value, {X: Z})
    assert free(moved) == {Y, Z}
    assert free(value) == {X, Y}


def test_regions_of_slices() -> None:
    data = Buffer("d", (16, 32), "float16", "global")
    region = index(data, (slice(X * 4, (X + 1) * 4), slice(None)))
    assert isinstance(region, Region)
    assert region.extents == (4, 32)
    assert region.kept == (True, True)
    row = index(data, (X,))
    assert isinstance(row, Region)
    assert row.extents == (1, 32)
    assert row.kept == (False, True)
    last = index(data, (-1, slice(-4, None)))
    assert isinstance(last, Region)
    assert last.starts[0] == 15
    with pytest.raises(TypeError, match="step"):
        index(data, (slice(0, 8, 2), 0))
    with pytest.raises(IndexError, match="2 axes"):
        index(data, (0, 0, 0))


def test_the_truth_of_an_expression_is_not_asked_while_tracing() -> None:
    with pytest.raises(TypeError, match="truth"):
        bool(X < Y)
    with pytest.raises(TypeError, match="integer"):
        range(X)  # type: ignore[arg-type]


def test_a_variable_in_an_extent_is_named() -> None:
    with pytest.raises(SimulatorError, match="x is left in it"):
        number(binary("+", X, 1))


def test_equality_of_expressions_is_an_expression() -> None:
    same: Any = X == Y
    assert isinstance(same, Binary)
    assert same.op == "=="
    assert isinstance(same, Expr)
    assert (X == "x") is False
