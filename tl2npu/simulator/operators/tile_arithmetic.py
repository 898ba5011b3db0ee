"""``T.tile`` operators that compute every element by itself: arithmetic, functions, bits, shifts, clamps.

Source: tilelang/language/ascend_tile.py; how numbers are passed on, src/target/codegen_ascend.cc (``Subs``: the
negative is added; ``Divs``: multiplied by the reciprocal).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import elements, is_tile, number, operand, same_type, span

_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "maximum", "min": "minimum"}
_BITS: dict[str, Callable[[Any, Any], Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
_UNARY = {
    "exp": "exp",
    "ln": "log",
    "abs": "absolute",
    "reciprocal": "reciprocal",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "sigmoid": "sigmoid",
    "silu": "silu",
    "sin": "sin",
    "cos": "cos",
}


def binary(A: Any, name: str, dst: Any, src0: Any, src1: Any) -> None:
    """``dst = src0 <name> src1``; ``src1`` a tile, a number or one element."""
    left = elements(A, name, src0, dst)
    if name == "div" and not is_tile(src1):
        if not A.is_float(dst):
            raise UnsupportedOperator(
                f"T.tile.{name} of integers by a number: the compiler multiplies by the reciprocal, which is 0"
            )
        dst[...] = A.mul(left, A.reciprocal(A.like(src1, dst)))
        return
    dst[...] = getattr(A, _BINARY[name])(left, operand(A, name, src1, dst))


def bits(A: Any, name: str, dst: Any, src0: Any, src1: Any) -> None:
    """``and``, ``or``, ``xor`` of integers, bit by bit."""
    if not is_tile(src1):
        raise UnsupportedOperator(f"T.tile.{name} with a number: the compiler has no such operator")
    whole(A, name, dst)
    dst[...] = _BITS[name](elements(A, name, src0, dst), elements(A, name, src1, dst, exact=False))


def whole(A: Any, name: str, tile: Any) -> None:
    """Raises SimulatorError for a tile of floats."""
    if A.is_float(tile):
        raise SimulatorError(f"T.tile.{name} of floats: it is for integers")


def unary(A: Any, name: str, dst: Any, src: Any) -> None:
    """``dst = name(src)``."""
    source = elements(A, name, src, dst)
    if name == "relu":
        dst[...] = A.maximum(source, A.literal(0, dst))
    elif name == "bitwise_not":
        whole(A, name, dst)
        dst[...] = np.bitwise_not(source)
    else:
        dst[...] = getattr(A, _UNARY[name])(source)


def with_scalar(A: Any, name: str, dst: Any, src0: Any, value: Any) -> None:
    """``leaky_relu``, ``axpy`` and the shifts: a tile and a number."""
    if is_tile(value):
        raise SimulatorError(f"T.tile.{name}: a tile where a number is needed")
    source = elements(A, name, src0, dst)
    if name in ("bitwise_lshift", "bitwise_rshift"):
        whole(A, name, dst)
        shift = np.left_shift if name == "bitwise_lshift" else np.right_shift
        width = dst.dtype.itemsize * 8
        if not 0 <= int(value) < width:
            raise SimulatorError(f"T.tile.{name} by {int(value)} bits of elements of {width} bits")
        dst[...] = shift(source, A.literal(int(value), dst))
        return
    factor = A.like(value, dst)
    if name == "axpy":
        dst[...] = A.multiply_add(source, factor, dst)
    else:
        dst[...] = A.where(A.less(source, A.literal(0, dst)), A.mul(source, factor), source)


def _binary_meaning(name: str) -> Callable[..., None]:
    def function(A: Any, dst: Any, src0: Any, src1: Any) -> None:
        (bits if name in _BITS else binary)(A, name, dst, src0, src1)

    return function


def _unary_meaning(name: str) -> Callable[..., None]:
    def function(A: Any, dst: Any, src0: Any = None, src: Any = None) -> None:
        unary(A, name, dst, src if src0 is None else src0)

    return function


for _name in (*_BINARY, *_BITS):
    semantics(f"tile.{_name}", reads="src0 src1", writes="dst")(_binary_meaning(_name))
for _name in (*_UNARY, "relu", "bitwise_not"):
    semantics(f"tile.{_name}", reads="src0 src", writes="dst")(_unary_meaning(_name))


@semantics("tile.pow", reads="src0 src1", writes="dst")
def power(A: Any, dst: Any, src0: Any, src1: Any) -> None:
    """``dst = src0 ** src1``; both tiles."""
    dst[...] = A.pow(elements(A, "pow", src0, dst), elements(A, "pow", src1, dst))


@semantics("tile.leaky_relu", reads="src0", writes="dst")
def leaky_relu(A: Any, dst: Any, src0: Any, scalar_value: Any) -> None:
    """Negative elements times a number."""
    with_scalar(A, "leaky_relu", dst, src0, scalar_value)


@semantics("tile.axpy", reads="src0 dst", writes="dst")
def axpy(A: Any, dst: Any, src0: Any, scalar_value: Any) -> None:
    """``dst = scalar_value * src0 + dst``."""
    with_scalar(A, "axpy", dst, src0, scalar_value)


@semantics("tile.mul_add_dst", reads="src0 src1 dst", writes="dst")
def mul_add_dst(A: Any, dst: Any, src0: Any, src1: Any) -> None:
    """``dst = src0 * src1 + dst``."""
    left, right = (elements(A, "mul_add_dst", s, dst) for s in (src0, src1))
    dst[...] = A.multiply_add(left, right, dst)


@semantics("tile.bitwise_lshift", reads="src0", writes="dst")
def bitwise_lshift(A: Any, dst: Any, src0: Any, scalarValue: Any) -> None:
    """``dst = src0 << scalarValue``; bits that leave the element are lost."""
    with_scalar(A, "bitwise_lshift", dst, src0, scalarValue)


@semantics("tile.bitwise_rshift", reads="src0", writes="dst")
def bitwise_rshift(A: Any, dst: Any, src0: Any, scalarValue: Any) -> None:
    """``dst = src0 >> scalarValue``; the sign of signed elements stays."""
    with_scalar(A, "bitwise_rshift", dst, src0, scalarValue)


@semantics("tile.clamp_max", reads="buffer", writes="out", raw=True)
def clamp_max(A: Any, out: Any, buffer: Any, scalar_value: Any, count: Any) -> None:
    """The first ``count`` elements, none larger than a number."""
    target, source = _counted(A, "clamp_max", out, buffer, count)
    target[...] = A.minimum(source, A.like(number(scalar_value), source))


@semantics("tile.clamp_min", reads="buffer", writes="out", raw=True)
def clamp_min(A: Any, out: Any, buffer: Any, scalar_value: Any, count: Any) -> None:
    """The first ``count`` elements, none smaller than a number."""
    target, source = _counted(A, "clamp_min", out, buffer, count)
    target[...] = A.maximum(source, A.like(number(scalar_value), source))


@semantics("tile.clamp", reads="buffer", writes="out", raw=True)
def clamp(A: Any, out: Any, buffer: Any, min_scalar: Any, max_scalar: Any, count: Any) -> None:
    """The first ``count`` elements, between two numbers (first the lower bound, then the upper one)."""
    target, source = _counted(A, "clamp", out, buffer, count)
    low, high = (A.like(number(bound), source) for bound in (min_scalar, max_scalar))
    target[...] = A.minimum(A.maximum(source, low), high)


@semantics("tile.round", reads="buffer", writes="out", raw=True)
def round_(A: Any, out: Any, buffer: Any, count: Any) -> None:
    """The first ``count`` elements as whole numbers; halves to the even one (target pto: away from zero)."""
    target, source = _counted(A, "round", out, buffer, count)
    target[...] = A.nearbyint(source)


def _counted(A: Any, name: str, out: Any, buffer: Any, count: Any) -> tuple[Any, Any]:
    """So many elements of both, flat."""
    source, target = span(name, buffer, count, "r"), span(name, out, count, "w")
    same_type(name, source, target)
    return target, source
