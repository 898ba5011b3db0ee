"""The laws of the ring, on floats of the host."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tl2npu.simulator.arithmetic import ring

PRIMES = ring.PRIMES
floats = st.floats(-(2.0**40), 2.0**40, width=32)
lists = st.lists(floats, min_size=3, max_size=3)


def element(value: Fraction) -> list[int]:
    """The residues of a fraction, by Python's integers."""
    return [value.numerator * pow(value.denominator, -1, n) % n for n in PRIMES]


def residues(x: object) -> list[int]:
    return [int(lane) for lane in ring.lanes(np.asarray(x, np.uint64))]


def prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def test_the_primes_form_a_tower() -> None:
    p, q, r = PRIMES
    assert all(prime(n) and n % 4 == 3 for n in PRIMES)
    assert (p - 1) % q == 0
    assert (q - 1) % r == 0


@settings(max_examples=200)
@given(floats, floats)
def test_floats_are_fractions(x: float, y: float) -> None:
    a, b = ring.embed(x), ring.embed(y)
    fx, fy = Fraction(x), Fraction(y)
    assert residues(ring.add(a, b)) == element(fx + fy)
    assert residues(ring.sub(a, b)) == element(fx - fy)
    assert residues(ring.mul(a, b)) == element(fx * fy)
    if fy and all(element(fy)):
        assert residues(ring.div(a, b)) == element(fx / fy)
        assert residues(ring.reciprocal(b)) == element(1 / fy)


@settings(max_examples=100)
@given(lists)
def test_exponentials_and_logarithms(values: list[float]) -> None:
    a, b, c = ring.embed(np.array(values))
    assert ring.exp(ring.add(a, b)) == ring.mul(ring.exp(a), ring.exp(b))
    assert ring.exp(ring.sub(a, a)) == ring.embed(1.0)
    assert ring.log(ring.mul(ring.exp(a), ring.exp(b))) == ring.add(ring.log(ring.exp(a)), ring.log(ring.exp(b)))
    assert residues(ring.log(ring.exp(c)))[1:] == residues(c)[1:]


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_different_elements_have_different_exponentials(seed: int) -> None:
    x = ring.embed(np.random.default_rng(seed).standard_normal(8))
    assert len(set(ring.exp(x).tolist())) == 8


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_products_of_matrices_are_sums_of_products(seed: int, inner: int) -> None:
    random = np.random.default_rng(seed)
    a, b = ring.embed(random.standard_normal((2, inner))), ring.embed(random.standard_normal((inner, 3)))
    product = ring.matmul(a, b)
    for i in range(2):
        for j in range(3):
            exact = [
                sum(x * y for x, y in zip(ring.lanes(a)[n][i].tolist(), ring.lanes(b)[n][:, j].tolist(), strict=True))
                for n in range(3)
            ]
            assert residues(product[i, j]) == [e % n for e, n in zip(exact, PRIMES, strict=True)]


@settings(max_examples=100)
@given(lists)
def test_the_order_is_total(values: list[float]) -> None:
    a, b, c = (int(k) for k in ring.key(ring.embed(np.array(values))))
    assert (a == b) == (values[0] == values[1])
    assert not (a < b < c < a)


@given(st.integers(-(2**24), 2**24), st.integers(-(2**24), 2**24))
def test_small_integers_are_ordered_as_numbers(x: int, y: int) -> None:
    assert (ring.key(ring.embed(float(x))) < ring.key(ring.embed(float(y)))) == (x < y)
    assert ring.embed(float(x)) == ring.embed_integers(np.int64(x))


@settings(max_examples=200)
@given(st.integers(-(2**24) + 1, 2**24 - 1), st.integers(-40, 16))
def test_floats_come_back(mantissa: int, exponent: int) -> None:
    value = float(np.ldexp(mantissa, exponent))
    found, known = ring.decode(ring.embed(value))
    assert known
    assert found == value


def test_what_is_no_float_is_not_taken_for_one() -> None:
    x = ring.hashed(ring.embed(np.arange(20000.0)), 2)
    assert not ring.decode(x)[1].any()


SPECIAL = [np.inf, -np.inf, np.nan, 0.0, 1.0, -1.0, 2.5]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_infinities_and_nan_are_those_of_floats(name: str) -> None:
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    with np.errstate(all="ignore"):
        expected = function(x, y)
        result = getattr(ring, name)(ring.embed(x), ring.embed(y))
    odd = ~np.isfinite(expected)
    tags = ring.from_float(expected)
    assert (result[odd] == tags[odd]).all()
    assert not ring.tagged(result[~odd])
    zero = ~odd & (expected == 0)
    assert (result[zero] == 0).all()


def test_the_exponential_of_minus_infinity_is_zero() -> None:
    assert ring.exp(ring.embed(np.array([-np.inf, np.inf, 0.0]))).tolist() == [0, int(ring.PLUS), int(ring.embed(1.0))]
    assert ring.log(ring.embed(np.array([0.0]))) == ring.MINUS


def test_the_square_of_a_root_is_the_number_up_to_signs() -> None:
    x = ring.embed(np.random.default_rng(0).standard_normal(200))
    square = ring.mul(ring.sqrt(x), ring.sqrt(x))
    for found, exact, n in zip(ring.lanes(square), ring.lanes(x), PRIMES, strict=True):
        assert ((found == exact) | (found == (np.uint64(n) - exact) % np.uint64(n))).all()
