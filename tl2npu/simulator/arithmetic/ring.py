"""The ring of the algebraic mode: integers modulo three primes, packed into 61 bits, and tags for infinities and NaN.

The ring is Z/PQR, held as its three residues ("lanes"). Every float is a fraction m * 2**e, and 2 has an inverse
modulo odd primes, so every float of the host has its own exact element and sums, products and quotients of floats are
exact: what is equal as a fraction is equal here. Two different fractions are taken for equal with probability 1e-18.

The primes form a tower, R divides Q - 1 and Q divides P - 1. So there are elements of order Q modulo P and of order R
modulo Q, and ``x -> g**x`` turns the sum of two elements into the product: an exponential function. Its lane P holds
what lane Q of its argument was, its lane Q what lane R was, its lane R is 1. The logarithm goes the same ways back.

Arrays here are raw: uint64, lanes P, Q and R from the lowest bit on, the tag in the highest three bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

PRIMES = (265166479, 130367, 65183)
P, Q, R = PRIMES
_SHIFTS = (0, 28, 45)
_MASKS = (2**28 - 1, 2**17 - 1, 2**16 - 1)
_TAG = 61
PLUS, MINUS, NAN = (np.uint64(n << _TAG) for n in (1, 2, 3))
"""Infinity, minus infinity, not a number."""
INTEGERS = 2**24
"""The largest mantissa that ``decode`` looks for: those of float32."""
_EXPONENTS = range(-16, 41)
_SMALL = 64
_GENERATORS = (pow(3, (P - 1) // Q, P), pow(5, (Q - 1) // R, Q))

Raw = Any
"""A uint64 array (or scalar) of ring elements."""
Lanes = Sequence[Any]


def lanes(x: Raw) -> list[Any]:
    """The residues modulo P, Q and R."""
    return [(x >> np.uint64(s)) & np.uint64(m) for s, m in zip(_SHIFTS, _MASKS, strict=True)]


def pack(residues: Lanes) -> Raw:
    """The element with these residues, each less than its prime."""
    low, middle, high = (np.asarray(r, np.uint64) for r in residues)
    return low | middle << np.uint64(_SHIFTS[1]) | high << np.uint64(_SHIFTS[2])


def tagged(*values: Raw) -> bool:
    """True if some element is an infinity or NaN."""
    return any(bool((np.asarray(v) >> np.uint64(_TAG)).any()) for v in values)


def as_float(x: Raw) -> Any:
    """What a float operation needs to know to treat infinities and zeros: -1, 0 or 1 for the sign, infinity or NaN.

    The sign is that of the float that an element is; elements that are none count as positive.
    """
    values, known = decode(x)
    result = np.where(known, np.sign(values), 1.0)
    return np.where(x >> np.uint64(_TAG) != 0, values, result)


def from_float(x: Any) -> Raw:
    """Infinities and NaN as tags, all others as 0."""
    return np.where(np.isnan(x), NAN, np.where(x == np.inf, PLUS, np.where(x == -np.inf, MINUS, np.uint64(0))))


def settled(result: Raw, operation: Callable[..., Any], *values: Raw, also: Any = False) -> Raw:
    """The result, with infinities and NaN (and the zeros that they make) where floats have them for such operands.

    Looked at are the places of infinities and NaN, and those that ``also`` names.
    """
    shape = np.shape(result)
    special = np.broadcast_to(also, shape)
    for value in values:
        special = special | ((value >> np.uint64(_TAG)) != 0)
    signs = []
    for value in values:
        if np.size(value) <= _SMALL:
            signs.append(np.broadcast_to(as_float(value), shape)[special])
        else:
            signs.append(as_float(np.broadcast_to(value, shape)[special]))
    result = np.array(result, np.uint64)
    result[special] = from_float(operation(*signs))
    return result


def _reduce(sums: Lanes) -> Raw:
    """Sums of two residues, brought below their primes."""
    return pack([s - np.where(s >= n, np.uint64(n), np.uint64(0)) for s, n in zip(sums, PRIMES, strict=True)])


def add(x: Raw, y: Raw) -> Raw:
    """The sum."""
    result = _reduce([a + b for a, b in zip(lanes(x), lanes(y), strict=True)])
    return settled(result, np.add, x, y) if tagged(x, y) else result


def neg(x: Raw) -> Raw:
    """The opposite."""
    result = _reduce([np.uint64(n) - a for a, n in zip(lanes(x), PRIMES, strict=True)])
    return settled(result, np.negative, x) if tagged(x) else result


def sub(x: Raw, y: Raw) -> Raw:
    """The difference."""
    return add(x, neg(y))


def mul(x: Raw, y: Raw) -> Raw:
    """The product."""
    result = pack([a * b % np.uint64(n) for a, b, n in zip(lanes(x), lanes(y), PRIMES, strict=True)])
    return settled(result, np.multiply, x, y) if tagged(x, y) else result


def power(x: Raw, exponents: Sequence[int]) -> Raw:
    """Each residue raised to a power of its own."""
    return pack([_power(a, e, n) for a, e, n in zip(lanes(x), exponents, PRIMES, strict=True)])


def _power(x: Any, exponent: int, prime: int) -> Any:
    result = np.ones_like(x)
    modulus = np.uint64(prime)
    while exponent:
        if exponent & 1:
            result = result * x % modulus
        exponent >>= 1
        if exponent:
            x = x * x % modulus
    return result


def reciprocal(x: Raw) -> Raw:
    """What gives 1 with ``x``; a residue 0 stays 0, and zero itself gives infinity."""
    result = power(x, [n - 2 for n in PRIMES])
    return settled(result, lambda a: 1 / a, x, also=x == 0) if tagged(x) or bool((x == 0).any()) else result


def div(x: Raw, y: Raw) -> Raw:
    """The quotient."""
    result = mul(_finite(x), power(_finite(y), [n - 2 for n in PRIMES]))
    return settled(result, np.divide, x, y, also=y == 0) if tagged(x, y) or bool((y == 0).any()) else result


def _finite(x: Raw) -> Raw:
    return np.where(x >> np.uint64(_TAG) != 0, np.uint64(0), x)


def sqrt(x: Raw) -> Raw:
    """A root: that of a product is the product of the roots; its square is ``x`` up to the sign of each residue."""
    result = power(x, [(n + 1) // 4 for n in PRIMES])
    return settled(result, _float_sqrt, x) if tagged(x) else result


def _float_sqrt(x: Any) -> Any:
    """Of infinities and NaN; the ring has roots of all finite elements."""
    return np.where(x == -np.inf, np.nan, x)


@functools.cache
def _powers(which: int) -> np.ndarray:
    """All powers of the generator of one step of the tower."""
    prime, order = PRIMES[which], PRIMES[which + 1]
    table = np.ones(order, np.uint64)
    value = 1
    for n in range(order):
        table[n] = value
        value = value * _GENERATORS[which] % prime
    return table


@functools.cache
def _logarithms(which: int) -> tuple[np.ndarray, np.ndarray]:
    """The powers in ascending order, and their exponents."""
    order = np.argsort(_powers(which))
    return _powers(which)[order], order.astype(np.uint64)


def exp(x: Raw) -> Raw:
    """The exponential function of the tower; minus infinity gives 0."""
    _, q, r = lanes(x)
    result = pack([_powers(0)[q], _powers(1)[r], np.ones_like(r)])
    return settled(result, lambda a: np.where(np.isinf(a), np.exp(a), a), x) if tagged(x) else result


def log(x: Raw) -> Raw:
    """The reverse of ``exp``: the logarithm of a product is the sum of the logarithms. Its lane P is 0."""
    found = [np.zeros_like(x)]
    for which, residue in enumerate(lanes(x)[:2]):
        prime, order = PRIMES[which], PRIMES[which + 1]
        cofactor = (prime - 1) // order
        values, exponents = _logarithms(which)
        at = np.searchsorted(values, _power(residue, cofactor, prime))
        exponent = exponents[np.minimum(at, order - 1)] * np.uint64(pow(cofactor, -1, order)) % np.uint64(order)
        found.append(np.where(residue == 0, np.uint64(0), exponent))
    result = pack(found)
    if not tagged(x) and not bool((x == 0).any()):
        return result
    return settled(result, lambda a: np.where(a == 0, -np.inf, np.where(a == -np.inf, np.nan, a)), x, also=x == 0)


def matmul(x: Raw, y: Raw) -> Raw:
    """The product of matrices. Float64 products of halves of residues are exact up to 2**21 terms."""
    (xp, xq, xr), (yp, yq, yr) = lanes(x), lanes(y)
    half = np.uint64(14)
    low = np.uint64(2**14 - 1)
    xh, xl, yh, yl = xp >> half, xp & low, yp >> half, yp & low
    high, middle, least = _product(xh, yh), _product(xh, yl) + _product(xl, yh), _product(xl, yl)
    modulus = np.uint64(P)
    p = (high % modulus * np.uint64(2**28 % P) + (middle % modulus << half) + least) % modulus
    result = pack([p, _product(xq, yq) % np.uint64(Q), _product(xr, yr) % np.uint64(R)])
    return settled_product(result, x, y) if tagged(x, y) else result


def settled_product(result: Raw, x: Raw, y: Raw) -> Raw:
    """As ``settled``, for a product of matrices: each of its elements has its own operands."""
    found = np.matmul(as_float(x), as_float(y))
    return np.where(np.isfinite(found), result, from_float(found))


def _product(x: Any, y: Any) -> Any:
    return np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.uint64)


def total(x: Raw, axis: Any) -> Raw:
    """The sum along axes."""
    result = pack([a.sum(axis=axis, dtype=np.uint64) % np.uint64(n) for a, n in zip(lanes(x), PRIMES, strict=True)])
    if not tagged(x):
        return result
    found = _specials(x).sum(axis=axis)
    return np.where(np.isfinite(found), result, from_float(found))


def _specials(x: Raw) -> Any:
    """Infinities and NaN as floats, all others as 0."""
    return np.choose((x >> np.uint64(_TAG)).astype(np.int64), [0.0, np.inf, -np.inf, np.nan])


def running(x: Raw, axis: int) -> Raw:
    """The running sums along an axis."""
    sums = [np.cumsum(a, axis=axis, dtype=np.uint64) % np.uint64(n) for a, n in zip(lanes(x), PRIMES, strict=True)]
    if not tagged(x):
        return pack(sums)
    found = np.cumsum(_specials(x), axis=axis)
    return np.where(np.isfinite(found), pack(sums), from_float(found))


def _balanced(x: Raw) -> Any:
    """Residues modulo P from the middle: those of small integers are the integers."""
    p = lanes(x)[0].astype(np.int64)
    return np.where(p > P // 2, p - P, p)


def key(x: Raw) -> Any:
    """A total order: by residue modulo P from the middle, then by the others; infinities at the ends, NaN above all."""
    result = (_balanced(x) << np.int64(33)) | ((x >> np.uint64(28)) & np.uint64(2**33 - 1)).astype(np.int64)
    tag = x >> np.uint64(_TAG)
    for number, value in ((1, 2**62), (2, -(2**62)), (3, 2**62 + 1)):
        result = np.where(tag == number, np.int64(value), result)
    return result


@functools.cache
def _two_to(prime: int) -> np.ndarray:
    """Powers of two from 2**-1200 to 2**1200."""
    first = pow(2, -1200, prime)
    return np.array([first * pow(2, n, prime) % prime for n in range(2401)], np.uint64)


def embed(values: Any) -> Raw:
    """Floats (as float64) as elements, exactly."""
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    shift = exponent.astype(np.int64) - 53 + 1200
    result = pack([(whole % n).astype(np.uint64) * _two_to(n)[shift] % np.uint64(n) for n in PRIMES])
    return result if bool(finite.all()) else np.where(finite, result, from_float(values))


def embed_integers(values: Any) -> Raw:
    """Integers as elements, exactly."""
    values = np.asarray(values)
    if values.dtype.kind == "u":
        return pack([values.astype(np.uint64) % np.uint64(n) for n in PRIMES])
    return pack([(values.astype(np.int64) % n).astype(np.uint64) for n in PRIMES])


def decode(x: Raw) -> tuple[Any, Any]:
    """The float that an element is, and whether it is one: m * 2**-e with 24 bits of m and e from -16 to 40."""
    flat = np.ravel(x)
    values = _specials(flat)
    known = (flat >> np.uint64(_TAG)) != 0
    open_ = np.flatnonzero(~known)
    residues = [
        a[open_] * _two_to(n)[1200 + _EXPONENTS[0]] % np.uint64(n) for a, n in zip(lanes(flat), PRIMES, strict=True)
    ]
    for exponent in _EXPONENTS:
        p = residues[0].astype(np.int64)
        whole = np.where(p > P // 2, p - P, p)
        fits = np.abs(whole) <= INTEGERS
        at = np.flatnonzero(fits)
        for residue, n in zip(residues[1:], PRIMES[1:], strict=True):
            at = at[whole[at] % n == residue[at].astype(np.int64)]
        if len(at):
            values[open_[at]] = np.ldexp(whole[at].astype(np.float64), -exponent)
            known[open_[at]] = True
            left = np.ones(len(open_), bool)
            left[at] = False
            open_, residues = open_[left], [r[left] for r in residues]
        residues = [
            r + r - np.where(r + r >= n, np.uint64(n), np.uint64(0)) for r, n in zip(residues, PRIMES, strict=True)
        ]
    return values.reshape(np.shape(x)), known.reshape(np.shape(x))


def scramble(x: Raw, tag: int) -> Raw:
    """64 bits that depend on all bits of an element and on a tag, without structure."""
    z = np.asarray(x) + np.uint64((tag * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hashed(x: Raw, tag: int) -> Raw:
    """An element that depends on another one and on the name of a function, without structure."""
    first, second = scramble(x, tag), scramble(x, tag + 1)
    return pack([first % np.uint64(P), (first >> np.uint64(32)) % np.uint64(Q), second % np.uint64(R)])
