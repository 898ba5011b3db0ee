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
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.ir import dtypes

Array = Any
"""Elements are kept in arrays of two 4-byte fields: NumPy refuses arithmetic on them, so none slips past this class.

The first field has the name of the element type.
"""


@functools.cache
def _storage(dtype: str) -> np.dtype:
    return np.dtype([(dtype, np.uint32), ("high", np.uint32)])


def _is_ring(x: Any) -> bool:
    kind = getattr(x, "dtype", None)
    return kind is not None and kind.names is not None


def _raw(x: Array) -> Any:
    return np.asarray(x).view(np.uint64)


def _like(raw: Any, *operands: Array) -> Array:
    kind = next(o.dtype for o in operands if _is_ring(o))
    return np.asarray(raw, np.uint64).view(kind)


def _through(name: str, operation: Callable[..., Any]) -> Any:
    """A function of ring elements; of integers as in the precise mode."""

    def computed(*operands: Array) -> Array:
        if not any(_is_ring(x) for x in operands):
            return getattr(Precise, name)(*operands)
        for x in operands:
            if not _is_ring(x):
                raise SimulatorError(f"{name} of a float and {type(x).__name__} in the algebraic mode")
        return _like(operation(*(_raw(x) for x in operands)), *operands)

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
    return _like(result if numbers else np.where(nan.any(axis=-1), ring.NAN, result), x)


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


class Algebraic:
    """See the module. The methods are those of ``Precise``."""

    name = "algebraic"

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
        return _raw(x) == ring.NAN if _is_ring(x) else Precise.isnan(x)

    @staticmethod
    def isinf(x: Array) -> Any:
        """Where there is an infinity."""
        return (_raw(x) == ring.PLUS) | (_raw(x) == ring.MINUS) if _is_ring(x) else Precise.isinf(x)

    @staticmethod
    def isfinite(x: Array) -> Any:
        """Where there is neither."""
        return _raw(x) >> np.uint64(61) == 0 if _is_ring(x) else Precise.isfinite(x)

    @staticmethod
    def less(x: Array, y: Array) -> Any:
        """``x < y`` in the order of ``maximum``."""
        if not _is_ring(x) and not _is_ring(y):
            return Precise.less(x, y)
        return (ring.key(_raw(x)) < ring.key(_raw(y))) & ~Algebraic._unordered(x, y)

    @staticmethod
    def less_equal(x: Array, y: Array) -> Any:
        """``x <= y`` in the order of ``maximum``."""
        if not _is_ring(x) and not _is_ring(y):
            return Precise.less_equal(x, y)
        return (ring.key(_raw(x)) <= ring.key(_raw(y))) & ~Algebraic._unordered(x, y)

    @staticmethod
    def equal(x: Array, y: Array) -> Any:
        """``x == y``."""
        if not _is_ring(x) and not _is_ring(y):
            return Precise.equal(x, y)
        return (_raw(x) == _raw(y)) & ~Algebraic._unordered(x, y)

    @staticmethod
    def _unordered(x: Array, y: Array) -> Any:
        return (_raw(x) == ring.NAN) | (_raw(y) == ring.NAN)

    @staticmethod
    def where(condition: Array, x: Array, y: Array) -> Array:
        """``x`` where the condition holds, else ``y``."""
        if not _is_ring(x) and not _is_ring(y):
            return Precise.where(condition, x, y)
        return _like(np.where(condition, _raw(x), _raw(y)), x, y)

    # along an axis

    @staticmethod
    def sum(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The sum along an axis."""
        return _like(ring.total(_raw(x), axis), x) if _is_ring(x) else Precise.sum(x, axis)

    @staticmethod
    def cumsum(x: Array, axis: int) -> Array:
        """Running sums."""
        return _like(ring.running(_raw(x), axis), x) if _is_ring(x) else Precise.cumsum(x, axis)

    @staticmethod
    def max(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The largest along an axis."""
        return _extreme(x, axis, True) if _is_ring(x) else Precise.max(x, axis)

    @staticmethod
    def min(x: Array, axis: int | tuple[int, ...]) -> Array:
        """The smallest along an axis."""
        return _extreme(x, axis, False) if _is_ring(x) else Precise.min(x, axis)

    @staticmethod
    def number_max(x: Array, axis: int) -> Array:
        """The largest number along an axis."""
        return _extreme(x, axis, True, True) if _is_ring(x) else Precise.number_max(x, axis)

    @staticmethod
    def number_min(x: Array, axis: int) -> Array:
        """The smallest number along an axis."""
        return _extreme(x, axis, False, True) if _is_ring(x) else Precise.number_min(x, axis)

    @staticmethod
    def descending(x: Array) -> Any:
        """The positions that put the last axis into descending order; equal elements keep theirs."""
        return np.argsort(-ring.key(_raw(x)), axis=-1, kind="stable") if _is_ring(x) else Precise.descending(x)

    @staticmethod
    def argmax(x: Array) -> Any:
        """The first position of the largest element along the last axis."""
        return np.argmax(ring.key(_raw(x)), axis=-1) if _is_ring(x) else Precise.argmax(x)

    @staticmethod
    def argmin(x: Array) -> Any:
        """The first position of the smallest element along the last axis."""
        return np.argmin(ring.key(_raw(x)), axis=-1) if _is_ring(x) else Precise.argmin(x)

    @staticmethod
    def matmul(x: Array, y: Array, dtype: str) -> Array:
        """The product of two matrices."""
        if not _is_ring(x) and not _is_ring(y):
            return Precise.matmul(x, y, dtype)
        return np.asarray(ring.matmul(_raw(x), _raw(y)), np.uint64).view(_storage(dtype))

    @staticmethod
    def accumulate(total: Array, value: Array) -> None:
        """``total += value``."""
        if _is_ring(total):
            total[...] = _like(ring.add(_raw(total), _raw(value)), total)
        else:
            Precise.accumulate(total, value)

    @staticmethod
    def factor(x: Array) -> Array:
        """Elements are what products are computed in."""
        return x

    # types

    @staticmethod
    def storage(dtype: str) -> np.dtype:
        """The NumPy type that a buffer of an element type is kept in."""
        return _storage(dtype) if dtypes.is_float(dtype) else Precise.storage(dtype)

    @staticmethod
    def number(value: Any, dtype: str) -> Any:
        """A constant of an element type."""
        if not dtypes.is_float(dtype):
            return Precise.number(value, dtype)
        exact = float(value) if dtype == "float64" else float(np.float32(value))
        return np.asarray(ring.embed(exact), np.uint64).view(_storage(dtype))[()]

    @staticmethod
    def literal(value: Any, like: Array) -> Any:
        """A Python number in the type of an array."""
        return Algebraic.number(value, Algebraic.name_of(like)) if _is_ring(like) else Precise.literal(value, like)

    @staticmethod
    def like(value: Any, array: Array) -> Any:
        """A number (a Python number or one of this arithmetic) in the type of an array."""
        if getattr(value, "dtype", None) is None:
            return Algebraic.literal(value, array)
        return value if value.dtype == array.dtype else Algebraic.cast(value, Algebraic.name_of(array))

    @staticmethod
    def is_float(array: Array) -> bool:
        """True for an array of ring elements."""
        return _is_ring(array)

    @staticmethod
    def name_of(array: Array) -> str:
        """The element type of an array."""
        return str(array.dtype.names[0]) if _is_ring(array) else Precise.name_of(array)

    @staticmethod
    def same_bits(array: Array, dtype: str) -> Array:
        """The memory of integers as elements of another type. Floats have no bits: UnsupportedOperator."""
        if _is_ring(array) or dtypes.is_float(dtype):
            if _is_ring(array) and dtype == Algebraic.name_of(array):
                return array.reshape(-1)
            raise UnsupportedOperator("the bits of floats have no meaning in the algebraic mode")
        return Precise.same_bits(array, dtype)

    @staticmethod
    def reinterpret(x: Array, source: str, dtype: str) -> Array:
        """The bits of a value as another type. Raises UnsupportedOperator for floats: they have no bits."""
        if source != dtype and (dtypes.is_float(source) or dtypes.is_float(dtype)):
            raise UnsupportedOperator("the bits of floats have no meaning in the algebraic mode")
        return x if source == dtype else Precise.reinterpret(x, source, dtype)

    @staticmethod
    def poison(dtype: str) -> Any:
        """What memory holds before it is written: NaN, and a large odd value for integers."""
        if not dtypes.is_float(dtype):
            return Precise.poison(dtype)
        return np.asarray(ring.NAN).view(_storage(dtype))[()]

    @staticmethod
    def cast(x: Array, dtype: str, mode: str = "trunc") -> Array:
        """Another element type: nothing for floats, exact from integers; to integers exact from what is a float."""
        if _is_ring(x):
            if dtypes.is_float(dtype):
                return _raw(x).view(_storage(dtype))
            if dtype == "bool":
                return _raw(x) != 0
            values, known = ring.decode(_raw(x))
            spread = (ring.scramble(_raw(x), 7) >> np.uint64(34)).astype(np.float64)
            return Precise.cast(np.where(known, values, spread), dtype, mode)
        if not dtypes.is_float(dtype):
            return Precise.cast(x, dtype, mode)
        if isinstance(x, float) or getattr(x, "dtype", np.dtype(int)).kind == "f":
            raise SimulatorError("a plain float where the algebraic mode has ring elements")
        return np.asarray(ring.embed_integers(x), np.uint64).view(_storage(dtype))

    @staticmethod
    def convert(x: Array, dtype: str, mode: str) -> Array:
        """Ascend's vector cast; between float types only the roundings to whole numbers do something."""
        if not _is_ring(x):
            return Algebraic.cast(x, dtype) if dtypes.is_float(dtype) else Precise.convert(x, dtype, mode)
        if dtypes.is_integer(dtype):
            return Algebraic.cast(x, dtype, "rint" if mode == "none" else mode)
        if Algebraic.name_of(x) == dtype and mode != "none":
            names = {"rint": "nearbyint", "floor": "floor", "ceil": "ceil", "round": "round", "trunc": "trunc"}
            return getattr(Algebraic, names[mode])(x)
        return Algebraic.cast(x, dtype)

    # the caller's tensors

    @staticmethod
    def from_host(array: np.ndarray, dtype: str) -> Array:
        """A tensor of the caller as the kernel sees it: floats as elements, in memory of their own."""
        if not dtypes.is_float(dtype):
            return array
        return np.asarray(ring.embed(array.astype(np.float64)), np.uint64).view(_storage(dtype))

    @staticmethod
    def to_host(array: Array, dtype: str) -> np.ndarray:
        """Elements as floats: those that are floats of the type exactly, all others by scrambled bits."""
        if not _is_ring(array):
            return np.asarray(array)
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
        if not _is_ring(held):
            return
        changed = _raw(Algebraic.from_host(array, dtype)) != _raw(held)
        if changed.any():
            array[changed] = Algebraic.to_host(held[changed], dtype)


for _name in IN_FLOATS:
    if not hasattr(Algebraic, _name):
        setattr(Algebraic, _name, _scrambled(_name, getattr(Precise, _name)))
