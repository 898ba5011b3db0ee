"""Symbolic integers against Python's own arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tl2npu.kernel.comparisons import at_most
from tl2npu.kernel.rows import Parity
from tl2npu.kernel.symbolic import Atom, Div, Mod, Sym, Var, ceildiv, const, opaque, var

NAMES = ("a", "b", "c")
Values = Mapping[str, int]


@dataclass(frozen=True)
class Tree:
    """An expression twice: as a symbolic integer and as a Python function. ``text`` is for failure messages."""

    build: Callable[[], Sym]
    value: Callable[[Values], int]
    text: str

    def __repr__(self) -> str:
        return self.text


def _number(value: int) -> Tree:
    return Tree(lambda: const(value), lambda _: value, str(value))


def _name(name: str) -> Tree:
    return Tree(lambda: var(name), lambda values: values[name], name)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
}


def _joined(pair: tuple[str, Tree, Tree]) -> Tree:
    sign, left, right = pair
    operate = _OPERATORS[sign]

    def build() -> Sym:
        return operate(left.build(), right.build())  # type: ignore[arg-type, return-value]

    return Tree(build, lambda v: operate(left.value(v), right.value(v)), f"({left.text} {sign} {right.text})")


def trees(
    names: tuple[str, ...] = NAMES, signs: str = "+ - * // %", bound: int = 8, leaves: int = 8
) -> st.SearchStrategy[Tree]:
    """Expression trees over some names, small numbers and some operators."""
    leaf = st.integers(-bound, bound).map(_number) | st.sampled_from(names).map(_name)
    return st.recursive(
        leaf, lambda inner: st.tuples(st.sampled_from(signs.split()), inner, inner).map(_joined), max_leaves=leaves
    )


values = st.fixed_dictionaries({name: st.integers(-40, 40) for name in NAMES})


def built(tree: Tree) -> Sym:
    """The normal form; trees that divide by what is always zero are no test cases."""
    try:
        return tree.build()
    except ZeroDivisionError:
        assume(False)
        raise


def python(tree: Tree, at: Values) -> int:
    """Python's result; values that divide by zero are no test cases."""
    try:
        return tree.value(at)
    except ZeroDivisionError:
        assume(False)
        raise


def direct(sym: Sym, at: Values) -> int:
    """The value of a normal form, read term by term and not with its own ``evaluate``."""
    total = 0
    for monomial, coefficient in sym.terms:
        product = coefficient
        for atom in monomial:
            product *= _direct_atom(atom, at)
        total += product
    return total


def _direct_atom(atom: Atom, at: Values) -> int:
    if isinstance(atom, Var):
        return at[atom.name]
    assert isinstance(atom, (Div, Mod))
    num, den = direct(atom.num, at), direct(atom.den, at)
    return num // den if isinstance(atom, Div) else num % den


@given(trees(), values)
def test_the_normal_form_has_the_value_of_the_expression(tree: Tree, at: Values) -> None:
    expected = python(tree, at)
    assert direct(built(tree), at) == expected


@given(trees(), values)
def test_evaluate_gives_pythons_result(tree: Tree, at: Values) -> None:
    expected = python(tree, at)
    assert built(tree).evaluate(at) == expected


@given(trees(("a",), bound=2, leaves=4), trees(("a",), bound=2, leaves=4))
def test_equal_normal_forms_mean_equal_values(left: Tree, right: Tree) -> None:
    if built(left) != built(right):
        return
    for number in range(-9, 10):
        assert python(left, {"a": number}) == python(right, {"a": number})


@given(trees(signs="+ - *"), trees(signs="+ - *"), trees(signs="+ - *"))
def test_rings_laws_are_seen_through(x: Tree, y: Tree, z: Tree) -> None:
    a, b, c = x.build(), y.build(), z.build()
    assert a * (b + c) == b * a + c * a
    assert (a + b) * (a - b) == a * a - b * b
    assert a - a == const(0)


@given(trees(leaves=5), trees(leaves=3), values)
def test_substitution_commutes_with_evaluation(tree: Tree, inner: Tree, at: Values) -> None:
    put = python(inner, at)
    expected = python(tree, {**at, "a": put})
    try:
        replaced = built(tree).substitute({"a": built(inner)})
    except ZeroDivisionError:
        assume(False)
        raise
    assert replaced.evaluate(at) == expected


@given(trees(signs="+ - *", leaves=4), st.integers(1, 9), st.integers(1, 9), values)
def test_nested_floor_divisions_are_one(tree: Tree, first: int, second: int, at: Values) -> None:
    nested = (tree.build() // first) // second
    assert nested.evaluate(at) == tree.value(at) // first // second == tree.value(at) // (first * second)
    assert (var("n") // first) // second == var("n") // (first * second)


@given(trees(signs="+ - *", leaves=4), st.integers(1, 9), values)
def test_ceildiv_rounds_up(tree: Tree, den: int, at: Values) -> None:
    assert ceildiv(tree.build(), const(den)).evaluate(at) == -(-tree.value(at) // den)


@given(trees(("a", "b"), leaves=4), st.integers(-20, 20).filter(bool))
def test_division_and_remainder_belong_together(tree: Tree, den: int) -> None:
    num = built(tree)
    for at in ({"a": x, "b": y} for x, y in itertools.product(range(-4, 5, 2), repeat=2)):
        expected = python(tree, at)
        assert (num // den * den + num % den).evaluate(at) == expected


def test_division_by_the_number_zero_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        var("a") // 0
    with pytest.raises(ZeroDivisionError):
        var("a") % const(0)


def test_evaluate_knows_what_it_does_not_know() -> None:
    assert (var("a") + var("b")).evaluate({"a": 1}) is None
    assert (var("a") // var("b")).evaluate({"a": 1, "b": 0}) is None
    assert opaque("f", var("a")).evaluate({"a": 1}) is None


def test_an_opaque_value_is_equal_to_itself_only() -> None:
    assert opaque("f", var("a")) == opaque("f", var("a"))
    assert opaque("f", var("a")) != opaque("f", var("b"))
    assert opaque("f", var("a")) != opaque("g", var("a"))
    assert opaque("f", var("a")).depends_on("a")
    assert not opaque("f", var("a")).depends_on("f")


def test_the_smallest_and_the_largest_of_numbers_are_numbers() -> None:
    smallest, largest = opaque("min", var("a"), const(5)), opaque("max", var("a"), const(5))
    assert smallest.evaluate({"a": 7}) == 5
    assert smallest.evaluate({"a": 3}) == 3
    assert largest.evaluate({"a": 7}) == 7
    assert (smallest * 2 + largest).evaluate({"a": 3}) == 11
    assert smallest.evaluate({}) is None
    assert opaque("f", const(5)).constant is None


@given(trees())
def test_variables_are_those_that_can_matter(tree: Tree) -> None:
    sym = built(tree)
    assert sym.variables() <= set(NAMES)
    for name in NAMES:
        assert sym.depends_on(name) == (name in sym.variables())


# evenness ------------------------------------------------------------------------------------------------------------


@given(trees(("a", "b"), leaves=5), trees(("a", "b"), leaves=5), trees(("a", "b"), leaves=4))
@example(_joined(("//", _name("a"), _number(2))), _name("a"), _name("a"))
def test_equality_under_evenness_is_sound(half: Tree, left: Tree, right: Tree) -> None:
    parity = Parity()
    parity.assume(built(half))
    one, other = built(left), built(right)
    if not parity.equal(one, other):
        return
    spaces = [range(-8, 9, 2) if name in parity.even else range(-5, 6) for name in ("a", "b")]
    for x, y in itertools.product(*spaces):
        try:
            pair = left.value({"a": x, "b": y}), right.value({"a": x, "b": y})
        except ZeroDivisionError:
            continue
        assert pair[0] == pair[1], (x, y, parity.even)


@given(trees(("a", "b"), "+ - *", leaves=3), st.sampled_from([1, 2, 3, 4]))
def test_a_half_is_a_half_of_the_whole(whole: Tree, factor: int) -> None:
    """``2 * (x // 2) == x`` is proved for an even name, and never for a name that nothing halves."""
    parity = Parity()
    half = var("n") // 2
    assert not parity.equal(half * 2, var("n"))
    parity.assume(half)
    assert parity.equal(half * 2 * factor + whole.build(), var("n") * factor + whole.build())
    assert not parity.equal((var("k") // 2) * 2, var("k"))


def test_evenness_is_assumed_of_what_is_halved_only() -> None:
    parity = Parity()
    parity.assume(var("m") * 3 + var("k") * (var("n") // 2))
    assert parity.even == {"n"}
    parity.assume(var("q") // 3)
    assert parity.even == {"n"}
    parity.assume((var("q") + var("r")) // 2)
    assert parity.even == {"n"}, "only the sum is even, neither of the two"


@pytest.mark.parametrize("head", ["LessThan", "LessThanEqual", "GreaterThan", "GreaterThanEqual"])
@given(left=st.integers(-9, 9), right=st.integers(-9, 9))
def test_at_most_says_what_the_condition_says(head: str, left: int, right: int) -> None:
    holds = {
        "LessThan": left < right,
        "LessThanEqual": left <= right,
        "GreaterThan": left > right,
        "GreaterThanEqual": left >= right,
    }
    sides = at_most(opaque(head, var("a"), var("b")))
    assert sides is not None
    low, high = (side.evaluate({"a": left, "b": right}) for side in sides)
    assert low is not None
    assert high is not None
    assert (low <= high) == holds[head]


@pytest.mark.parametrize("head", ["Equal", "NotEqual", "Not"])
def test_at_most_of_other_conditions(head: str) -> None:
    assert at_most(opaque(head, var("a"), var("b"))) is None
    assert at_most(var("a") + 1) is None


@pytest.mark.parametrize(
    "value",
    [
        (var("a") + 15) // const(16) * 16,
        (var("a") + 15) // const(16) + var("b"),
        (var("a") % var("b")) * var("b"),
        (var("a") // var("b")) // const(3) * var("c"),
        var("a") * var("a") * 3 - var("b"),
        const(0),
    ],
)
def test_the_text_is_pythons(value: Sym) -> None:
    """``16 * (15 + a) // 16`` is something else than ``16 * ((15 + a) // 16)``."""
    for numbers in ({"a": 37, "b": 5, "c": 2}, {"a": 8, "b": 3, "c": 7}):
        assert eval(str(value), dict(numbers)) == value.evaluate(numbers)
