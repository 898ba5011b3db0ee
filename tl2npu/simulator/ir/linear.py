"""Linear form of integer expressions: a constant and coefficients over atoms.

Enough to see that the length of ``a[i * 4 + j : (i + 1) * 4 + j]`` is 4, and which loop variables an index moves
with.
"""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.expr import Binary, Call, Cast, Const, Expr, Load, Unary, Var, plain

Key = Any
"""What an atom is recognised by: equal structure, same variables and buffers."""
Sum = tuple[dict[Key, tuple[int, Expr]], int]


def linear(value: Any) -> Sum:
    """``value`` as a sum: atom key -> (coefficient, the atom), and the constant."""
    value = plain(value)
    if not isinstance(value, Expr):
        return {}, int(value)
    if isinstance(value, Binary) and value.op in ("+", "-"):
        return _added(linear(value.left), linear(value.right), 1 if value.op == "+" else -1)
    if isinstance(value, Binary) and value.op == "*":
        left, right = linear(value.left), linear(value.right)
        if not left[0]:
            return _scaled(right, left[1])
        if not right[0]:
            return _scaled(left, right[1])
        return _distributed(left, right)
    if isinstance(value, Cast) and _keeps(_dtype(value.value), value.dtype):
        return linear(value.value)
    return {key_of(value): (1, value)}, 0


def _keeps(source: str, target: str) -> bool:
    """True if a conversion of an index changes nothing; what leaves int32 is wrong before."""
    if not (dtypes.is_integer(source) and dtypes.is_integer(target)):
        return False
    if target.startswith("u"):
        return source.startswith("u") and dtypes.bits(target) >= dtypes.bits(source)
    return dtypes.bits(target) >= min(dtypes.bits(source), 32)


def _dtype(value: Any) -> str:
    return value.dtype if isinstance(value, Expr) else "int32"


def _added(left: Sum, right: Sum, sign: int) -> Sum:
    terms = dict(left[0])
    for key, (factor, atom) in right[0].items():
        total = terms.get(key, (0, atom))[0] + sign * factor
        if total:
            terms[key] = (total, atom)
        else:
            terms.pop(key, None)
    return terms, left[1] + sign * right[1]


def _scaled(side: Sum, factor: int) -> Sum:
    if factor == 0:
        return {}, 0
    return {key: (f * factor, atom) for key, (f, atom) in side[0].items()}, side[1] * factor


def _distributed(left: Sum, right: Sum) -> Sum:
    """(sum) * (sum): products of atoms are atoms of their own."""
    total: Sum = ({}, left[1] * right[1])
    total = _added(total, _scaled((right[0], 0), left[1]), 1)
    total = _added(total, _scaled((left[0], 0), right[1]), 1)
    for left_key, (left_factor, left_atom) in left[0].items():
        for right_key, (right_factor, right_atom) in right[0].items():
            key = ("*", *sorted((left_key, right_key), key=repr))
            atom = Binary("*", left_atom, right_atom, "int32")
            total = _added(total, ({key: (left_factor * right_factor, atom)}, 0), 1)
    return total


def key_of(value: Any) -> Key:
    """A hashable form of an expression; equal for equal structure."""
    value = plain(value)
    if isinstance(value, Var):
        return ("var", id(value), value.name)
    if isinstance(value, Const):
        return ("const", value.dtype, value.value)
    if isinstance(value, Binary):
        return (value.op, key_of(value.left), key_of(value.right))
    if isinstance(value, (Unary, Cast)):
        return (type(value).__name__, getattr(value, "op", value.dtype), key_of(value.value))
    if isinstance(value, Call):
        return (value.name, *(key_of(a) for a in value.args))
    if isinstance(value, Load):
        return ("load", value.buffer.number, *(key_of(i) for i in value.indices))
    return value


def constant_difference(left: Any, right: Any) -> int | None:
    """``left - right`` if it is the same integer whatever the variables are, else None."""
    terms, constant = _added(linear(left), linear(right), -1)
    return None if terms else constant
