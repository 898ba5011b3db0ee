"""What the algebraic mode promises: equal computations agree bit for bit, others do not."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tl2npu.simulator.arithmetic.algebraic import Algebraic as A
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.arithmetic.structure import Structure
from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator

seeds = st.integers(0, 2**32)
SETTINGS = settings(max_examples=40)


def draw(seed: int, *shape: int, dtype: str = "float32") -> Any:
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return A.from_host(values, dtype)


def same(x: Any, y: Any) -> bool:
    return bool(np.all(A.equal(x, y)))


def methods(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


@pytest.mark.parametrize("mode", [A, Structure])
def test_every_mode_has_the_methods_of_precise(mode: type) -> None:
    assert methods(mode) - {"otherwise", "word"} == methods(Precise)


@pytest.mark.parametrize("mode", [A, Structure])
def test_methods_take_the_same_parameters(mode: type) -> None:
    for name in methods(Precise):
        precise, other = getattr(Precise, name), getattr(mode, name)
        try:
            expected = inspect.signature(precise).parameters
        except (TypeError, ValueError):
            continue
        found = inspect.signature(other).parameters if callable(other) else {}
        if not callable(precise) or any(p.kind is p.VAR_POSITIONAL for p in found.values()) or "ufunc" in repr(precise):
            continue
        assert len(found) == len(expected), name


@SETTINGS
@given(seeds, st.integers(1, 4), st.integers(0, 2**31))
def test_reordered_sums_agree_and_lost_terms_do_not(seed: int, parts: int, other: int) -> None:
    x = draw(seed, 24)
    order = np.random.default_rng(other).permutation(24)
    whole = A.sum(x, 0)
    assert same(A.sum(x[order], 0), whole)
    pieces = [A.sum(p, 0) for p in np.array_split(x[order], parts)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = A.add(total, piece)
    assert same(total, whole)
    assert not same(A.sum(x[1:], 0), whole)
    assert not same(A.add(whole, x[0]), whole)


@SETTINGS
@given(seeds, st.sampled_from([1, 2, 4, 8]))
def test_tiled_products_agree_and_a_swapped_index_does_not(seed: int, tile: int) -> None:
    a, b = draw(seed, 6, 8, dtype="float16"), draw(seed + 1, 8, 5, dtype="float16")
    whole = A.matmul(a, b, "float32")
    total = A.literal(0, whole) if tile == 8 else None
    for k in range(0, 8, tile):
        part = A.matmul(a[:, k : k + tile], b[k : k + tile], "float32")
        total = part if k == 0 else A.add(total, part)
    assert same(total, whole)
    swapped = a.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    assert not same(A.matmul(swapped, b, "float32"), whole)
    assert not np.any(A.equal(A.matmul(a[:, 1:], b[1:], "float32"), whole))


def plain_attention(s: Any, v: Any) -> Any:
    peak = A.max(s, 1)[:, None]
    weights = A.exp(A.sub(s, peak))
    return A.div(A.matmul(weights, v, "float32"), A.sum(weights, 1)[:, None])


def online_attention(s: Any, v: Any, tile: int, forget: bool = False) -> Any:
    peak = np.full(s.shape[0], A.number(-np.inf, "float32"), A.storage("float32"))
    total = np.full(s.shape[0], A.number(0, "float32"), A.storage("float32"))
    result = np.full((s.shape[0], v.shape[1]), A.number(0, "float32"), A.storage("float32"))
    log2e = A.number(1.4426950408889634, "float32")
    for k in range(0, s.shape[1], tile):
        part = s[:, k : k + tile]
        new = A.maximum(peak, A.max(part, 1))
        scale = A.exp2(A.mul(A.sub(peak, new), log2e))
        weights = A.exp2(A.sub(A.mul(part, log2e), A.mul(new, log2e)[:, None]))
        total = A.add(A.mul(total, scale), A.sum(weights, 1))
        kept = result if forget else A.mul(result, scale[:, None])
        result = A.add(kept, A.matmul(weights, v[k : k + tile], "float32"))
        peak = new
    return A.mul(result, A.reciprocal(total)[:, None])


@pytest.mark.thorough
@SETTINGS
@given(seeds, st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_a_softmax_that_rescales_is_a_softmax(seed: int, tile: int) -> None:
    with np.errstate(all="ignore"):
        s, v = draw(seed, 4, 12), draw(seed + 1, 12, 3)
        expected = plain_attention(s, v)
        assert same(online_attention(s, v, tile), expected)
        assert not same(online_attention(s, v[::-1], tile), expected)
        if tile < 12:
            forgotten = online_attention(s, v, tile, forget=True)
            assert not same(forgotten, expected) or same(A.max(s[:, :tile], 1), A.max(s, 1))


@SETTINGS
@given(seeds, st.sampled_from([1, 2, 3, 4, 6]))
def test_the_logarithm_of_a_sum_of_exponentials_does_not_depend_on_tiles(seed: int, tile: int) -> None:
    s = draw(seed, 3, 12)
    peak = A.max(s, 1)
    expected = A.add(A.log(A.sum(A.exp(A.sub(s, peak[:, None])), 1)), peak)
    top, total = A.max(s[:, :tile], 1), None
    for k in range(0, 12, tile):
        new = A.maximum(top, A.max(s[:, k : k + tile], 1))
        part = A.sum(A.exp(A.sub(s[:, k : k + tile], new[:, None])), 1)
        total = part if total is None else A.add(A.mul(total, A.exp(A.sub(top, new))), part)
        top = new
    assert same(A.add(A.log(total), top), expected)
    assert not same(A.log(total), expected)
    shifted = A.add(peak, s[:, 0])  # any number may stand for the peak: two residues of three agree
    moved = A.add(A.log(A.sum(A.exp(A.sub(s, shifted[:, None])), 1)), shifted)
    assert same(A.exp(moved), A.exp(expected))


@SETTINGS
@given(seeds)
def test_identities(seed: int) -> None:
    x, y = draw(seed, 16), draw(seed + 1, 16)
    half, one = A.number(0.5, "float32"), A.number(1, "float32")
    assert same(A.add(A.mul(half, x), A.mul(half, x)), x)
    assert same(A.div(x, y), A.mul(x, A.div(one, y)))
    assert same(A.rsqrt(x), A.div(one, A.sqrt(x)))
    assert same(A.sqrt(A.mul(x, y)), A.mul(A.sqrt(x), A.sqrt(y)))
    assert same(A.sigmoid(x), A.div(one, A.add(one, A.exp(A.neg(x)))))
    assert same(A.silu(x), A.mul(x, A.sigmoid(x)))
    assert same(A.erf(A.neg(x)), A.neg(A.erf(x)))
    assert same(A.cos(A.neg(x)), A.cos(x))
    assert same(A.pow(x, A.number(2, "float32")), A.mul(x, x))
    assert same(A.absolute(A.neg(x)), A.absolute(x))
    assert same(A.multiply_add(x, y, x), A.add(A.mul(x, y), x))
    assert not same(A.erf(x), A.sin(x))
    assert not same(A.exp(x), A.exp2(x))


@SETTINGS
@given(seeds)
def test_extremes_in_any_order(seed: int) -> None:
    x = draw(seed, 5, 7)
    total = x[:, 3]
    for column in (0, 6, 1, 5, 2, 4):
        total = A.maximum(x[:, column], total)
    assert same(total, A.max(x, 1))
    assert same(A.maximum(total, total), total)
    assert same(A.min(x, 1), A.neg(A.max(A.neg(x), 1)))
    assert bool(np.all(A.less_equal(x, A.max(x, 1)[:, None])))
    assert same(np.take_along_axis(x, A.descending(x)[:, :1], 1)[:, 0], A.max(x, 1))


def test_minus_infinity_masks() -> None:
    x = A.from_host(np.array([[1.0, -np.inf, 3.0], [-np.inf, 2.0, -np.inf]], np.float32), "float32")
    weights = A.exp(A.sub(x, A.max(x, 1)[:, None]))
    assert A.to_host(weights, "float32")[1].tolist() == [0, 1, 0]
    assert A.to_host(A.mul(x, A.number(0.125, "float32")), "float32")[0].tolist() == [0.125, -np.inf, 0.375]
    assert A.to_host(A.mul(x, A.number(-2, "float32")), "float32")[0].tolist() == [-2, np.inf, -6]


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16", "float8_e4m3fn", "float64"])
def test_floats_come_back(dtype: str) -> None:
    from tl2npu.simulator.ir.dtypes import numpy_dtype

    values = np.array([0, 1, -1, 0.5, -3, 2.25, np.nan, 28]).astype(numpy_dtype(dtype))
    back = A.to_host(A.from_host(values, dtype), dtype)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back.astype(np.float64), values.astype(np.float64))


def test_a_changed_tensor_is_brought_back_and_the_rest_is_left() -> None:
    array = np.array([1e-30, 2.0, 3.0], np.float32)  # the first has no short form
    held = A.from_host(array, "float32")
    held[1] = A.number(7, "float32")
    A.bring_back(array, held, "float32")
    assert array.tolist() == [np.float32(1e-30), 7, 3]


def test_integers_are_exact_on_both_ways() -> None:
    numbers = np.array([-(2**24), -5, 0, 7, 2**24], np.int32)
    assert A.cast(A.cast(numbers, "float32"), "int32").tolist() == numbers.tolist()
    x = A.from_host(np.array([2.5, -2.5, 3.0], np.float32), "float32")
    assert A.cast(x, "int32", "floor").tolist() == [2, -3, 3]
    assert A.to_host(A.round(x), "float32").tolist() == [3, -3, 3]


def test_numpy_cannot_compute_with_elements() -> None:
    """An operator that does not ask the arithmetic fails instead of computing nonsense."""
    x = draw(0, 4)
    for wrong in (lambda: x + x, lambda: np.maximum(x, x), lambda: x.sum(), lambda: x.astype(np.float32)):
        with pytest.raises((TypeError, ValueError)):
            wrong()


def test_what_has_no_meaning_is_refused() -> None:
    x = draw(0, 4)
    with pytest.raises(UnsupportedOperator, match="bits of floats"):
        A.same_bits(x, "uint32")
    with pytest.raises(UnsupportedOperator, match="bits of floats"):
        A.reinterpret(x, "float32", "int32")
    with pytest.raises(SimulatorError, match="algebraic"):
        A.add(x, np.float32(1))
