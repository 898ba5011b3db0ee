"""Numbers with what is not known of them: how far two right implementations may differ.

A value has an element type, its numbers in float64, and for each a *slack*: how far the result of another right
implementation may be away, which rounds elsewhere, sums in another order or divides by multiplying. Where even that
is not known (overflow, a comparison of two numbers that may be equal, a logarithm of 0) the slack is infinite, and
the element judges nothing. So programs need no tolerances, and conditions on data need no care.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf
from typing import Any

import numpy as np

Array = np.ndarray
UNKNOWN = np.inf

EPSILON = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
"""Half of the distance from 1 to the next number."""
TINY = {"float16": 2.0**-24, "bfloat16": 1e-38, "float32": 1e-38}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38}
INTEGERS = {
    "int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip
BITS = {"int8": 8, "uint8": 8, "int16": 16, "int32": 32, "float16": 16, "bfloat16": 17, "float32": 32}
WEAK_INT, WEAK_FLOAT, BOOL = "a Python int", "a Python float", "bool"


class Discard(Exception):
    """The program has no meaning, or not one only: it is drawn again."""


@dataclass(frozen=True)
class Value:
    """``value`` and ``slack``: float64, of equal shape or scalars."""

    dtype: str
    value: Any
    slack: Any = 0.0


def is_float(dtype: str) -> bool:
    return dtype in EPSILON or dtype == WEAK_FLOAT


def number(value: int | float) -> Value:
    """A Python number."""
    return Value(WEAK_FLOAT if isinstance(value, float) else WEAK_INT, np.float64(value), np.float64(0.0))


def settle(dtype: str, value: Any, slack: Any, roundings: Any = 0.0) -> Value:
    """A result of the type, after this many roundings of it; unknown where the type does not hold it."""
    value, slack = np.asarray(value, np.float64), np.asarray(slack, np.float64)
    if dtype in EPSILON:
        finite = np.isfinite(value)
        more = np.where(
            finite, 2 * roundings * (EPSILON[dtype] * np.abs(np.where(finite, value, 0.0)) + TINY[dtype]), 0.0
        )
        slack = slack + more
        lost = np.isnan(value) | (finite & (np.abs(value) + slack > LARGEST[dtype]))
    elif dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        lost = np.isnan(value) | (slack > 0) & (slack < 0.5) | (value - slack < low) | (value + slack > high)
    else:
        return Value(dtype, value, slack)
    return Value(dtype, np.where(np.isnan(value), 0.0, value), np.where(lost, UNKNOWN, slack))


def join(left: str, right: str) -> str:
    """The type of both together. Raises Discard for signed and unsigned integers: nobody agrees about them."""
    if left == right:
        return left
    for weak, other in ((left, right), (right, left)):
        if weak == WEAK_INT:
            return other
        if weak == WEAK_FLOAT:
            return other if is_float(other) else WEAK_FLOAT if other == WEAK_INT else "float32"
    if BOOL in (left, right):
        raise Discard("a truth value as a number")
    if is_float(left) != is_float(right):
        return left if is_float(left) else right
    if "uint8" in (left, right):
        raise Discard("signed and unsigned")
    return max(left, right, key=BITS.__getitem__)


def cast(dtype: str, value: Value) -> Value:
    """A conversion: to the nearest float, integers towards 0."""
    number, slack = np.asarray(value.value), np.asarray(value.slack)
    low, high = INTEGERS.get(dtype, (0, 0))
    if dtype in INTEGERS and value.dtype == WEAK_INT and ((number < low) | (number > high)).any():
        raise Discard("a number that the type does not have")
    if dtype in EPSILON:
        exact = value.dtype == dtype or (value.dtype in INTEGERS and BITS[value.dtype] < 16)
        return settle(dtype, number, slack, 0.0 if exact else 0.5)
    if is_float(value.dtype):
        low, high = np.trunc(number - slack), np.trunc(number + slack)
        slack = np.where(np.isfinite(slack) & (low == high), 0.0, UNKNOWN)
        number = np.trunc(np.where(np.isfinite(number), number, np.nan))
    return settle(dtype, number, slack)


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
INTEGER_ONLY = {"&", "|", "^", "<<", ">>", "//", "%", "ceildiv"}


def binary(op: str, left: Value, right: Value) -> Value:
    """The operators of :class:`tests.generated.program.Bin`."""
    if op in ("and", "or"):
        return _logic(op, left, right)
    dtype = join(left.dtype, right.dtype)
    with np.errstate(all="ignore"):
        if op in COMPARISONS:
            near = np.abs(left.value - right.value) <= left.slack + right.slack
            unsure = near & (left.slack + right.slack > 0)
            return Value(
                BOOL, COMPARISONS[op](left.value, right.value).astype(np.float64), np.where(unsure, UNKNOWN, 0.0)
            )
        if op in ("min", "max"):
            chosen = (np.minimum if op == "min" else np.maximum)(left.value, right.value)
            return settle(dtype, chosen, np.maximum(left.slack, right.slack))
        if op in INTEGER_ONLY:
            return _whole(op, dtype, left, right)
        return _arithmetic(op, dtype, left, right)


def _arithmetic(op: str, dtype: str, left: Value, right: Value) -> Value:
    a, b, s, t = left.value, right.value, left.slack, right.slack
    rounded = 1.0 if is_float(dtype) else 0.0
    if op in "+-":
        result = a + b if op == "+" else a - b
        return settle(
            dtype,
            result,
            s + t + rounded * 2 * EPSILON.get(dtype, 0.0) * _finite(np.maximum(np.abs(a), np.abs(b))),
            rounded,
        )
    if op == "*":
        return settle(dtype, a * b, _times(np.abs(a), t) + _times(np.abs(b), s) + _times(s, t), rounded)
    if not is_float(dtype):
        raise Discard("a quotient of integers")
    smallest = np.abs(b) - t
    slack = np.where(
        smallest > 0,
        (_times(np.abs(a), t) / np.where(b == 0, 1, np.abs(b)) + s) / np.where(smallest > 0, smallest, 1),
        UNKNOWN,
    )
    return settle(dtype, a / np.where(b == 0, 1, b), slack, 3.0)


def _times(size: Any, slack: Any) -> Any:
    """A factor of this size times the slack of the other: infinity is certain of its own, but not of another's."""
    return np.where(slack == 0, 0.0, np.where(np.isinf(slack), UNKNOWN, size * slack))


def _finite(a: Any) -> Any:
    return np.where(np.isfinite(a), a, 0.0)


def _whole(op: str, dtype: str, left: Value, right: Value) -> Value:
    if is_float(dtype):
        raise Discard(f"{op} of floats")
    unsure = (left.slack + right.slack > 0) | (np.abs(left.value) > 2.0**50) | (np.abs(right.value) > 2.0**50)
    a = np.where(unsure, 0, left.value).astype(np.int64)
    b = np.where(unsure, 1, right.value).astype(np.int64)
    if op in ("//", "%", "ceildiv"):
        unsure = unsure | (b <= 0) | (a < 0)  # Python, C and the compilers do not agree about negative numbers
        b = np.where(b <= 0, 1, b)
        result = {"//": a // b, "%": a % b, "ceildiv": -(-a // b)}[op]
    elif op in ("<<", ">>"):
        unsure = unsure | (b < 0) | (b > 15) | (a < 0)
        b = np.clip(b, 0, 15)
        result = a << b if op == "<<" else a >> b
    else:
        result = a & b if op == "&" else a | b if op == "|" else a ^ b
    return settle(dtype, result, np.where(unsure, UNKNOWN, 0.0))


def _logic(op: str, left: Value, right: Value) -> Value:
    if {left.dtype, right.dtype} != {BOOL}:
        raise Discard("a number as a truth value")
    a, b = left.value != 0, right.value != 0
    decided = (left.slack == 0) & (a if op == "or" else ~a) | (right.slack == 0) & (b if op == "or" else ~b)
    unsure = ~decided & (left.slack + right.slack > 0)
    return Value(BOOL, ((a | b) if op == "or" else (a & b)).astype(np.float64), np.where(unsure, UNKNOWN, 0.0))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "exp": (np.exp, -np.inf), "exp2": (np.exp2, -np.inf), "log": (np.log, 0.0), "log2": (np.log2, 0.0),
    "sqrt": (np.sqrt, 0.0), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.0), "tanh": (np.tanh, -np.inf),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -np.inf), "erf": (np.vectorize(erf, otypes=[float]), -np.inf),
}  # fmt: skip
"""Rising or falling functions of a float, with what their argument must be above."""
TANH = 2.0**-21
"""An NPU has no tanh: ``2 * sigmoid(2 * x) - 1`` in float32 is off by some units in the last place of 1."""


def unary(op: str, operand: Value) -> Value:
    """The operators of :class:`tests.generated.program.Un`."""
    value, slack, dtype = np.asarray(operand.value), np.asarray(operand.slack), operand.dtype
    if op == "not":
        return Value(BOOL, (value == 0).astype(np.float64), slack)
    if op == "neg":
        return settle(dtype, -value, slack)
    if op == "abs":
        return settle(dtype, np.abs(value), slack)
    if op in ("sin", "cos"):
        return settle(
            dtype,
            (np.sin if op == "sin" else np.cos)(_finite(value)),
            slack + np.where(np.isfinite(value), 0, UNKNOWN),
            8.0,
        )
    function, least = FUNCTIONS[op]
    if not is_float(dtype):
        raise Discard(f"{op} of an integer")
    with np.errstate(all="ignore"):
        spread = np.where(np.isfinite(slack), slack, 0.0)
        inside = value - spread > least
        x = np.where(inside | np.isneginf(least), value, 1.0)
        result = function(x)
        off = np.maximum(
            np.abs(function(x + spread) - result), np.abs(function(np.where(inside, x - spread, x)) - result)
        )
        off = np.where(np.isfinite(off), off, np.where(np.isinf(result) | np.isinf(value), 0.0, UNKNOWN))
        off = np.where((inside | np.isneginf(least)) & np.isfinite(slack), off, UNKNOWN)
        off = off + (TANH if op == "tanh" else 0.0)
        return settle(dtype, result, off, 8.0 + 2 * np.minimum(np.abs(_finite(value)), 100.0))


def choose(condition: Value, yes: Value, no: Value) -> Value:
    """One of two by a truth value; unknown which where it is."""
    dtype = join(yes.dtype, no.dtype)
    chosen = np.where(condition.value != 0, yes.value, no.value)
    slack = np.where(condition.value != 0, yes.slack, no.slack)
    with np.errstate(invalid="ignore"):
        either = np.where(yes.value == no.value, 0.0, np.abs(yes.value - no.value)) + yes.slack + no.slack
    return Value(dtype, chosen, np.where(condition.slack > 0, either, slack))
