"""Floats as elements of an integer ring (``ring``): computations that are equal by algebra agree bit for bit.

Every float that the caller gives or the kernel names has its own exact element; rounding is left out. What holds bit
for bit, so that two kernels which differ only by it give the same result:

* sums, differences, products, fused products and products of matrices, in any order and tiling;
* quotients: ``x / y == x * (1 / y)``, ``(a / b) * b == a``, ``0.5 * x + 0.5 * x == x``;
* ``exp(a + b) == exp(a) * exp(b)`` (also ``exp2``, ``exp10``, ``sigmoid``, ``silu``, ``tanh``, ``sinh``, ``cosh``,
  which are made of it), so a softmax that rescales as it goes equals one that does not;
  ``exp(x) == exp2(x * log2e)`` where the constant is log2(e) in fp32;
* ``log(exp(x)) == x`` and ``log(a * b) == log(a) + log(b)`` in two residues of three (the exponential of both agrees);
* ``sqrt(a * b) == sqrt(a) * sqrt(b)``, ``rsqrt(x) == 1 / sqrt(x)``;
* ``max`` and ``min`` in any order, comparisons that fit them, ``abs(-x) == abs(x)``;
* infinities, zero and NaN as IEEE has them; integers below 2**24 are compared, rounded and converted as numbers.

What does not hold, or is not seen:

* conversions between float types change nothing, so a lost or an additional one is not seen, nor is rounding;
* constants are rounded to fp32 first (to fp64 in fp64 kernels): two constants whose exact product is a third one are
  not that one here after rounding;
* the order of ``max`` is not that of the numbers (except for small integers), and a maximum does not move through a
  sum or a product: ``max(a, b) + c`` is not ``max(a + c, b + c)``;
* a large finite number in place of minus infinity is a number like others: its exponential is not 0;
* ``sqrt(x) ** 2`` is ``x`` only up to the signs of its residues;
* ``exp(log(x))`` is not ``x``: partial softmaxes that are combined through their log-sum-exp do not give the softmax
  of the whole (both kernels have to do it);
* other functions (``sin``, ``erf``, ...) are scrambled values: equal for equal arguments, odd and even functions for
  opposite ones, and nothing more;
* an exponential holds 33 of the 61 bits of what its argument was, the exponential of an exponential 16, a third one
  none; a logarithm holds 33;
* a residue that happens to be 0 has no inverse: about one quotient in 40,000 does not multiply back;
* bits of floats: reinterpreting, views of another float type, atomics and sorts on raw memory are refused.

A result that is a float of at most 24 bits of mantissa (the copy of an input, a small sum) comes back as that float,
every other one as a float made of scrambled bits: equal elements give equal floats, different ones almost surely
different ones. Integers are computed as ever.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.dialects.functions import IN_FLOATS
from tl2npu.simulator.arithmetic import ring
from tl2npu.simulator.arithmetic.opaque import Array, Opaque, opaque
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes

_raw, _of = Opaque.raw, Opaque.of


def _through(name: str, operation: Callable[..., Any]) -> Any:
    """A function of ring elements."""

    def computed(*operands: Array) -> Array:
        for x in operands:
            if not opaque(x):
                raise SimulatorError(f"{name} of a float and {type(x).__name__} in the algebraic mode")
        return _of(operation(*map(_raw, operands)), operands[0].dtype)

    return staticmethod(computed)


def _constant(value: float) -> Any:
    return ring.embed(np.float64(np.float32(value)))


_ONE, _TWO, _HALF = (_constant(x) for x in (1.0, 2.0, 0.5))
_LOG2_E, _LOG2_10 = _constant(math.log2(math.e)), _constant(math.log2(10.0))


def _exp(x: Any) -> Any:
    return ring.exp(ring.mul(x, _LOG2_E))


def _sigmoid(x: Any) -> Any:
    return ring.div(_ONE, ring.add(_ONE, _exp(ring.neg(x))))


def _tanh(x: Any) -> Any:
    return ring.sub(ring.mul(_TWO, _sigmoid(ring.mul(_TWO, x))), _ONE)


def _halves(combine: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: ring.mul(_HALF, combine(_exp(x), _exp(ring.neg(x))))


_NAMES = ("sin", "cos", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "atan2", "fmod", "pow")
_TAGS = {name: tag for tag, name in enumerate(dict.fromkeys((*_NAMES, *sorted(IN_FLOATS))))}


def _tag(name: str) -> int:
    return 2 * (_TAGS[name] + 1)


def _scrambled(name: str, function: Callable[[Any], Any], symmetry: int = 0) -> Any:
    """A function without laws, but for its symmetry: -1 odd, 1 even. Infinities and 0 as floats have them."""

    def operation(x: Any) -> Any:
        negative = (ring.key(x) < 0) & (symmetry != 0)
        result = ring.hashed(np.where(negative, ring.neg(x), x), _tag(name))
        if symmetry < 0:
            result = np.where(negative, ring.neg(result), result)
        if ring.tagged(x) or bool((x == 0).any()):
            special = (x == 0) | (x >> np.uint64(61) != 0)
            result = np.where(special, ring.embed(function(ring.as_float(np.where(special, x, np.uint64(0))))), result)
        return result

    return _through(name, operation)


def _rounded(name: str) -> Any:
    """Rounding to whole numbers: exact for what is a float, scrambled for all else."""
    function = getattr(Precise, name)

    def operation(x: Any) -> Any:
        values, known = ring.decode(x)
        return np.where(known, ring.embed(np.where(known, function(values), 0.0)), ring.hashed(x, 1000 + ord(name[0])))

    return _through(name, operation)


def _chosen(larger: bool, x: Any, y: Any, numbers: bool = False) -> Any:
    """The larger or the smaller; NaN wins, or loses where ``numbers`` are preferred."""
    first, second = ring.key(x), ring.key(y)
    result = np.where((first >= second) == larger, x, y)
    for value, other in ((x, y), (y, x)):
        nan = value == ring.NAN
        result = np.where(nan, other if numbers else ring.NAN, result)
    return result


def _extreme(x: Array, axis: Any, larger: bool, numbers: bool = False) -> Array:
    raw = _raw(x)
    axes = tuple(axis) if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % raw.ndim for a in axes)
    kept = [n for n in range(raw.ndim) if n not in axes]
    flat = raw.transpose([*kept, *axes]).reshape([raw.shape[n] for n in kept] + [-1])
    nan = flat == ring.NAN
    lowest = np.int64(-(2**62) - 1) if larger else np.int64(2**62 + 2)
    keys = np.where(nan, lowest, ring.key(flat))
    at = (np.argmax if larger else np.argmin)(keys, axis=-1)
    result = np.take_along_axis(flat, np.expand_dims(at, -1), -1)[..., 0]
    return _of(result if numbers else np.where(nan.any(axis=-1), ring.NAN, result), x.dtype)


def _power(x: Any, y: Any) -> Any:
    """Whole and half exponents by products and roots, all others as ``exp2(y * log2(x))``."""
    x, y = np.broadcast_arrays(x, y)
    values, known = ring.decode(y)
    result = ring.exp(ring.mul(y, ring.log(x)))
    twice = np.where(known & np.isfinite(values), 2 * values, 0.25)
    for exponent in np.unique(twice[(twice == np.rint(twice)) & (np.abs(twice) <= 2**12)]):
        base = ring.sqrt(x) if exponent % 2 else x
        whole = int(abs(exponent)) if exponent % 2 else int(abs(exponent)) // 2
        product = functools.reduce(lambda total, _: ring.mul(total, base), range(whole), np.full(x.shape, _ONE))
        product = ring.reciprocal(product) if exponent < 0 else product
        result = np.where(twice == exponent, product, result)
    return result


def _unordered(x: Array, y: Array) -> Any:
    return (_raw(x) == ring.NAN) | (_raw(y) == ring.NAN)


class Algebraic(Opaque):
    """See the module."""

    name = "algebraic"

    @staticmethod
    def otherwise(name: str) -> Callable[..., Any]:
        """What has no laws."""
        return _scrambled(name, getattr(Precise, name)) if name in IN_FLOATS else Opaque.otherwise(name)

    add = _through("add", ring.add)
    sub = _through("sub", ring.sub)
    mul = _through("mul", ring.mul)
    neg = _through("neg", ring.neg)
    div = _through("div", ring.div)
    reciprocal = _through("reciprocal", ring.reciprocal)
    multiply_add = _through("multiply_add", lambda x, y, z: ring.add(ring.mul(x, y), z))
    exp = _through("exp", _exp)
    exp2 = _through("exp2", ring.exp)
    exp10 = _through("exp10", lambda x: ring.exp(ring.mul(x, _LOG2_10)))
    log = _through("log", lambda x: ring.div(ring.log(x), _LOG2_E))
    log2 = _through("log2", ring.log)
    log10 = _through("log10", lambda x: ring.div(ring.log(x), _LOG2_10))
    log1p = _through("log1p", lambda x: ring.div(ring.log(ring.add(_ONE, x)), _LOG2_E))
    sqrt = _through("sqrt", ring.sqrt)
    rsqrt = _through("rsqrt", lambda x: ring.reciprocal(ring.sqrt(x)))
    sigmoid = _through("sigmoid", _sigmoid)
    silu = _through("silu", lambda x: ring.mul(x, _sigmoid(x)))
    tanh = _through("tanh", _tanh)
    sinh = _through("sinh", _halves(ring.sub))
    cosh = _through("cosh", _halves(ring.add))
    sin = _scrambled("sin", np.sin, -1)
    cos = _scrambled("cos", np.cos, 1)
    tan = _scrambled("tan", np.tan, -1)
    asin = _scrambled("asin", np.arcsin, -1)
    acos = _scrambled("acos", np.arccos)
    atan = _scrambled("atan", np.arctan, -1)
    asinh = _scrambled("asinh", np.arcsinh, -1)
    acosh = _scrambled("acosh", np.arccosh)
    atanh = _scrambled("atanh", np.arctanh, -1)
    erf = _scrambled("erf", Precise.erf, -1)
    floor = _rounded("floor")
    ceil = _rounded("ceil")
    trunc = _rounded("trunc")
    round = _rounded("round")
    nearbyint = _rounded("nearbyint")
    pow = _through("pow", _power)
    atan2 = _through("atan2", lambda x, y: ring.hashed(ring.add(ring.hashed(x, _tag("atan2")), y), _tag("atan2")))
    fmod = _through("fmod", lambda x, y: ring.hashed(ring.add(ring.hashed(x, _tag("fmod")), y), _tag("fmod")))
    maximum = _through("maximum", functools.partial(_chosen, True))
    minimum = _through("minimum", functools.partial(_chosen, False))
    number_maximum = _through("number_maximum", functools.partial(_chosen, True, numbers=True))
    number_minimum = _through("number_minimum", functools.partial(_chosen, False, numbers=True))
    absolute = _through("absolute", lambda x: np.where(ring.key(x) < 0, ring.neg(x), x))
    fabs = absolute
    copysign = _through("copysign", lambda x, y: np.where((ring.key(x) < 0) == (ring.key(y) < 0), x, ring.neg(x)))

    # tests and comparisons

    @staticmethod
    def isnan(x: Array) -> Any:
        """Where there is no number."""
        return _raw(x) == ring.NAN

    @staticmethod
    def isinf(x: Array) -> Any:
        """Where there is an infinity."""
        return (_raw(x) == ring.PLUS) | (_raw(x) == ring.MINUS)

    @staticmethod
    def isfinite(x: Array) -> Any:
        """Where there is neither."""
        return _raw(x) >> np.uint64(61) == 0

    @staticmethod
    def less(x: Array, y: Array) -> Any:
        """``x < y`` in the order of ``maximum``."""
        return (ring.key(_raw(x)) < ring.key(_raw(y))) & ~_unordered(x, y)

    @staticmethod
    def less_equal(x: Array, y: Array) -> Any:
        """``x <= y`` in the order of ``maximum``."""
        return (ring.key(_raw(x)) <= ring.key(_raw(y))) & ~_unordered(x, y)

    @staticmethod
    def equal(x: Array, y: Array) -> Any:
        """``x == y``."""
        return (_raw(x) == _raw(y)) & ~_unordered(x, y)

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        """``x`` where the condition holds, else ``y``."""
        return _of(np.where(condition, _raw(x), _raw(y)), (x if opaque(x) else y).dtype)

    # along an axis

    sum = staticmethod(lambda x, axis: _of(ring.total(_raw(x), axis), x.dtype))
    cumsum = staticmethod(lambda x, axis: _of(ring.running(_raw(x), axis), x.dtype))
    max = functools.partial(_extreme, larger=True)
    min = functools.partial(_extreme, larger=False)
    number_max = functools.partial(_extreme, larger=True, numbers=True)
    number_min = functools.partial(_extreme, larger=False, numbers=True)
    argmax = staticmethod(lambda x: np.argmax(ring.key(_raw(x)), axis=-1))
    argmin = staticmethod(lambda x: np.argmin(ring.key(_raw(x)), axis=-1))

    @staticmethod
    def descending(x: Array) -> Any:
        """The positions that put the last axis into descending order; equal elements keep theirs."""
        return np.argsort(-ring.key(_raw(x)), axis=-1, kind="stable")

    @staticmethod
    def matmul(x: Array, y: Array, dtype: str) -> Array:
        """The product of two matrices."""
        return _of(ring.matmul(_raw(x), _raw(y)), dtype)

    @staticmethod
    def accumulate(total: Array, value: Array) -> None:
        """``total += value``."""
        total[...] = _of(ring.add(_raw(total), _raw(value)), total.dtype)

    # types

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant of an element type."""
        exact = float(value) if dtype == "float64" else float(np.float32(value))
        return _of(ring.embed(exact), dtype)[()]

    @staticmethod
    def poison(dtype: str) -> Any:
        """What memory holds before it is written: NaN."""
        return _of(ring.NAN, dtype)[()]

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type: nothing for floats, exact from integers; to integers exact from what is a float."""
        if not opaque(x):
            if isinstance(x, float) or getattr(x, "dtype", np.dtype(int)).kind == "f":
                raise SimulatorError("a plain float where the algebraic mode has ring elements")
            return _of(ring.embed_integers(x), dtype)
        if dtypes.is_float(dtype):
            return _of(_raw(x), dtype)
        if dtype == "bool":
            return _raw(x) != 0
        values, known = ring.decode(_raw(x))
        spread = (ring.scramble(_raw(x), 7) >> np.uint64(34)).astype(np.float64)
        return Precise.cast(np.where(known, values, spread), dtype, mode)

    @staticmethod
    def convert(x: Array, dtype: str, mode: str) -> Array:
        """Ascend's vector cast; between float types only the roundings to whole numbers do something."""
        if opaque(x) and dtypes.is_integer(dtype):
            return Algebraic.cast(x, dtype, "rint" if mode == "none" else mode)
        if opaque(x) and Algebraic.name_of(x) == dtype and mode != "none":
            names = {"rint": "nearbyint", "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "trunc"}
            return getattr(Algebraic, names[mode])(x)
        return Algebraic.cast(x, dtype)

    # the caller's tensors

    @staticmethod
    def from_host(array: np.ndarray, dtype: str) -> Array:
        """A tensor of the caller as the kernel sees it: floats as elements, in memory of their own."""
        return _of(ring.embed(array.astype(np.float64)), dtype)

    @staticmethod
    def to_host(array: Array, dtype: str) -> np.ndarray:
        """Elements as floats: those that are floats of the type exactly, all others by scrambled bits."""
        raw, kind = _raw(array), dtypes.numpy_dtype(dtype)
        values, known = ring.decode(raw)
        exact = values.astype(kind)
        known &= (exact.astype(np.float64) == values) | ~np.isfinite(values)
        bits = ring.scramble(raw, 3)
        fraction = (bits >> np.uint64(12)).astype(np.float64) / 2**52
        spread = np.ldexp(1 + fraction, ((bits >> np.uint64(1)) & np.uint64(3)).astype(np.int64) - 2)
        scrambled = np.where(bits & np.uint64(1), -spread, spread).astype(kind)
        return np.asarray(np.where(known, exact, scrambled))

    @staticmethod
    def bring_back(array: np.ndarray, held: Array, dtype: str) -> None:
        """Writes what the kernel changed into the caller's tensor; what it did not change stays as it is."""
        changed = _raw(Algebraic.from_host(array, dtype)) != _raw(held)
        if changed.any():
            array[changed] = Algebraic.to_host(held[changed], dtype)
