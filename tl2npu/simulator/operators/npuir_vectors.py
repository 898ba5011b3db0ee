"""Vector operators, reductions and matrix products of npuir kernels; the destination is the last operand.

Operands have one rank; an axis of length 1 is broadcast against a longer one (codegen_npuir_dev.cc,
``getBroadcastDim``). A result of another rank than the destination is reshaped. Sources are read before anything is
written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.operators.gemm import product
from tl2npu.simulator.operators.masks import compared
from tl2npu.simulator.operators.npuir_copies import converted
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import is_tile


def together(name: str, *tiles: Any) -> list[Any]:
    """Tiles in the shape in which they meet. Raises SimulatorError for tiles that do not.

    Expert mode takes the lowest rank: of a tile with more axes the first ones of length 1 go (codegen_npuir_api.cc,
    ``GenRankReducedSubviewFromRegion``).
    """
    rank = min(t.ndim for t in tiles)
    try:
        return list(np.broadcast_arrays(*(_lowered(t, rank) for t in tiles)))
    except ValueError:
        shapes = ", ".join(str(list(t.shape)) for t in tiles)
        raise SimulatorError(
            f"T.{name} of {shapes}: axes of the same number have to be of one length, or of length 1"
        ) from None


def _lowered(x: Any, rank: int) -> Any:
    """A tile without its first axes of length 1, as far as it has more than ``rank`` axes."""
    shape = list(x.shape)
    for axis in [n for n, size in enumerate(shape) if size == 1][: max(len(shape) - rank, 0)][::-1]:
        del shape[axis]
    if len(shape) != rank:
        raise ValueError("more axes")
    return x.reshape(shape)


def put(A: Any, name: str, target: Any, values: Any) -> None:
    """The result of an operator into its destination."""
    values = np.asarray(values)
    if values.dtype != target.dtype:
        values = A.cast(values, A.name_of(target))
    if values.ndim == target.ndim and all(v in (1, t) for v, t in zip(values.shape, target.shape, strict=True)):
        target[...] = values
    elif values.size == target.size and values.ndim != target.ndim:
        target[...] = values.reshape(target.shape)
    else:
        raise SimulatorError(f"T.{name}: a result {list(values.shape)} does not fit {list(target.shape)}")


def one_type(A: Any, name: str, *tiles: Any) -> None:
    """Raises SimulatorError for operands of different element types."""
    kinds = [A.name_of(t) for t in tiles]
    if len(set(kinds)) > 1:
        raise SimulatorError(f"T.{name}: operands of the element types {', '.join(kinds)}")


_WIDENED = {"vadd", "vmul", "vmax", "vmin", "vdiv", "vsub", "vcmp"} | {
    *("vexp", "vrelu", "vsigmoid", "vln", "vsqrt", "vrsqrt", "vabs", "vrec", "reduce")
}
"""Operators that the compiler computes in float32 where an operand is a bfloat16 (legalize_npuir_bf16.cc)."""


def sources(A: Any, name: str, *tiles: Any) -> list[Any]:
    """The operands but the last, which is the destination, in one element type.

    Raises SimulatorError where the element types differ, unless they are bfloat16 and float32 and the compiler
    converts.
    """
    kinds = {A.name_of(t) for t in tiles}
    if len(kinds) > 1 and kinds == {"bfloat16", "float32"} and name in _WIDENED:
        return [A.cast(t, "float32") for t in tiles[:-1]]
    one_type(A, name, *tiles)
    return list(tiles[:-1])


_PAIRS = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "maximum", "min": "minimum", "pow": "pow"}
_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _pair(kind: str) -> Callable[..., None]:
    name = f"v{kind}"

    def binary(arithmetic: Any, A: Any, B: Any, C: Any) -> None:
        left, right = _both(arithmetic, name, A, B, C)
        if kind in _BITS:
            if arithmetic.is_float(C):
                raise SimulatorError(f"T.{name} of {arithmetic.name_of(C)}: bits of integers are meant")
            put(arithmetic, name, C, _BITS[kind](left, right))
        elif kind == "shl":
            put(arithmetic, name, C, np.left_shift(left, right))
        else:
            put(arithmetic, name, C, getattr(arithmetic, _PAIRS[kind])(left, right))

    return binary


def _both(A: Any, name: str, left: Any, right: Any, target: Any) -> tuple[Any, Any]:
    """Both operands in the shape in which they meet; a number gets the type of the tile."""
    if not is_tile(right):
        (left,) = sources(A, name, left, target)
        return left, A.like(right, left)
    left, right = together(name, *sources(A, name, left, right, target))
    return left, right


for _kind in (*_PAIRS, *_BITS, "shl"):
    semantics(f"npuir.v{_kind}", reads="A B", writes="C")(_pair(_kind))


@semantics("npuir.vshr", reads="A B", writes="C")
def vshr(arithmetic: Any, A: Any, B: Any, C: Any, round: Any = True) -> None:
    """``A >> B``; ``round`` changes nothing (the branch's tests, which leave it true, expect the plain shift)."""
    left, right = _both(arithmetic, "vshr", A, B, C)
    put(arithmetic, "vshr", C, np.right_shift(left, right))


_ERF = 2 / math.sqrt(math.pi)
_UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda A, x: A.exp(x),
    "relu": lambda A, x: A.maximum(x, A.like(0, x)),
    "sigmoid": lambda A, x: A.sigmoid(x),
    "ln": lambda A, x: A.log(x),
    "sqrt": lambda A, x: A.sqrt(x),
    "rsqrt": lambda A, x: A.rsqrt(x),
    "abs": lambda A, x: A.absolute(x),
    "rec": lambda A, x: A.reciprocal(x),
    "not": lambda A, x: np.invert(x),
    "cos": lambda A, x: _series(A, x, "cos", False, (1.0, -0.5, 1.0 / 24, -1.0 / 720)),
    "sin": lambda A, x: _series(A, x, "sin", True, (1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040)),
    "erf": lambda A, x: _series(A, x, "erf", True, tuple(_ERF * c for c in (1.0, -1.0 / 3, 1.0 / 10, -1.0 / 42))),
    "tanh": lambda A, x: _tanh(A, x),
}


def _series(A: Any, x: Any, name: str, odd: bool, terms: tuple[float, ...]) -> Any:
    """The four terms of a Taylor series about 0 that the compiler makes of a function, at whatever ``x``.

    (codegen_npuir_dev.cc, ``VcosCodegen`` and the others.) Algebra has the function itself.
    """
    if A.name != "precise":
        return getattr(A, name)(x)
    square = A.mul(x, x)
    power = x if odd else A.like(1.0, x)
    total = A.mul(power, A.like(terms[0], x))
    for factor in terms[1:]:
        power = A.mul(power, square)
        total = A.add(A.mul(power, A.like(factor, x)), total)
    return total


def _tanh(A: Any, x: Any) -> Any:
    """``(exp(2x) - 1) / (exp(2x) + 1)``, which is no number where ``exp(2x)`` is infinite."""
    if A.name != "precise":
        return A.tanh(x)
    power = A.exp(A.mul(x, A.like(2.0, x)))
    return A.div(A.sub(power, A.like(1.0, x)), A.add(power, A.like(1.0, x)))


def _single(kind: str) -> Callable[..., None]:
    name = f"v{kind}"

    def unary(arithmetic: Any, A: Any, B: Any) -> None:
        (source,) = sources(arithmetic, name, A, B)
        if kind == "not" and arithmetic.is_float(A):  # of the bits
            bits = arithmetic.same_bits(np.ascontiguousarray(A), f"int{A.dtype.itemsize * 8}")
            put(arithmetic, name, B, np.invert(bits).view(A.dtype).reshape(A.shape))
            return
        put(arithmetic, name, B, _UNARY[kind](arithmetic, source))

    return unary


for _kind in _UNARY:
    semantics(f"npuir.v{_kind}", reads="A", writes="B")(_single(_kind))


@semantics("npuir.vexp2", reads="A", writes="B Tmp")
def vexp2(arithmetic: Any, A: Any, B: Any, Tmp: Any) -> None:
    """``B = 2 ** A``, by way of ``Tmp = A * ln 2``."""
    one_type(arithmetic, "vexp2", A, B, Tmp)
    put(arithmetic, "vexp2", Tmp, arithmetic.mul(A, arithmetic.like(float(np.log(2.0)), A)))
    put(arithmetic, "vexp2", B, arithmetic.exp2(A) if arithmetic.name != "precise" else arithmetic.exp(Tmp))


@semantics("npuir.vlog2", reads="A", writes="B Tmp")
def vlog2(arithmetic: Any, A: Any, B: Any, Tmp: Any) -> None:
    """``B = log2(A)``, by way of ``Tmp = ln A``."""
    one_type(arithmetic, "vlog2", A, B, Tmp)
    logs = arithmetic.log(A)
    exact = arithmetic.log2(A) if arithmetic.name != "precise" else None
    put(arithmetic, "vlog2", Tmp, logs)
    value = arithmetic.mul(logs, arithmetic.like(float(1.0 / np.log(2.0)), logs)) if exact is None else exact
    put(arithmetic, "vlog2", B, value)


_ROUNDING = ("round", "rint", "floor", "ceil", "trunc", "odd")


@semantics("npuir.vcast", reads="src", writes="dst")
def vcast(A: Any, src: Any, dst: Any, round_mode: str = "rint") -> None:
    """Another element type, rounded by mode; integers saturate."""
    if round_mode not in _ROUNDING:
        raise SimulatorError(f"T.vcast: no rounding mode {round_mode!r}; there are {', '.join(_ROUNDING)}")
    source, target = A.name_of(src), A.name_of(dst)
    if "bool" in (source, target) or source == target or round_mode == "rint":
        put(A, "vcast", dst, converted(A, src, source, target))
        return
    if round_mode == "odd" and not (A.is_float(src) and A.is_float(dst)):
        raise UnsupportedOperator(f"T.vcast of {source} to {target} with round_mode='odd'")
    put(A, "vcast", dst, A.convert(src, target, round_mode))


@semantics("npuir.vbrc", reads="src", writes="dst")
def vbrc(A: Any, src: Any, dst: Any) -> None:
    """A number everywhere, or a tile repeated along its axes of length 1."""
    if not is_tile(src):
        dst[...] = A.like(src, dst)
        return
    one_type(A, "vbrc", src, dst)
    put(A, "vbrc", dst, np.array(src))


@semantics("npuir.vselect", reads="Cond A B", writes="Out")
def vselect(arithmetic: Any, Cond: Any, A: Any, B: Any, Out: Any) -> None:
    """``A`` where the condition holds, else ``B``; the condition is a tile of bool."""
    if arithmetic.name_of(Cond) != "bool":
        raise SimulatorError(f"T.vselect: a condition of {arithmetic.name_of(Cond)}, not of bool")
    one_type(arithmetic, "vselect", A, B, Out)
    put(arithmetic, "vselect", Out, arithmetic.where(*together("vselect", Cond, A, B)))


@semantics("npuir.vcmp", reads="A B", writes="C")
def vcmp(arithmetic: Any, A: Any, B: Any, C: Any, cmp_mod: str) -> None:
    """A comparison into a tile of bool."""
    if arithmetic.name_of(C) != "bool":
        raise SimulatorError(f"T.vcmp: a result of {arithmetic.name_of(C)}, not of bool")
    if is_tile(B):
        A, B, _ = sources(arithmetic, "vcmp", A, B, A, B)
        left, right = together("vcmp", A, B)
    else:
        left, right = A, arithmetic.like(B, A)
    put(arithmetic, "vcmp", C, compared(arithmetic, left, right, cmp_mod.upper()))


@semantics("npuir.vclamp", reads="src min_val max_val", writes="dst")
def vclamp(A: Any, src: Any, dst: Any, min_val: Any, max_val: Any) -> None:
    """First the lower bound, then the upper one; numbers or tiles."""
    left, low = _both(A, "vclamp", src, min_val, dst)
    value = A.maximum(left, low)
    value, high = _both(A, "vclamp", np.asarray(value), max_val, dst)
    put(A, "vclamp", dst, A.minimum(value, high))


# reductions and scans


def _reduced(A: Any, src: Any, dims: tuple[int, ...], mode: str) -> Any:
    if mode in ("sum", "max", "min"):
        return getattr(A, mode)(src, dims)
    if mode == "prod":
        value = src
        for axis in sorted(dims, reverse=True):
            rows = np.moveaxis(value, axis, 0)
            value = rows[0]
            for row in rows[1:]:
                value = A.mul(value, row)
        return value
    if mode in ("any", "all"):
        truth = src if A.name_of(src) == "bool" else np.logical_not(A.equal(src, A.like(0, src)))
        value = getattr(np, mode)(truth, axis=dims)
        return value if A.name_of(src) == "bool" else A.cast(np.asarray(value).astype(np.int8), A.name_of(src))
    if mode in ("xori", "ori"):
        if A.is_float(src):
            raise SimulatorError(f"T.reduce with {mode!r} of {A.name_of(src)}: bits of integers are meant")
        return (np.bitwise_xor if mode == "xori" else np.bitwise_or).reduce(src, axis=dims)
    raise UnsupportedOperator(f"T.reduce with the mode {mode!r}")


_COMBINE = {"sum": "add", "max": "maximum", "min": "minimum"}


@semantics("npuir.reduce", reads="src dst", writes="dst everything")
def reduce(A: Any, src: Any, dst: Any, dims: Any, reduce_mode: str, clear: Any = True, everything: Any = None) -> None:
    """The axes ``dims`` to length 1; without ``clear`` combined with what is there.

    ``everything``: the whole destination, of which only a part is meant. The compiler combines it with a new tile of
    which it has written that part only, so nothing is known of the rest.
    """
    (src,) = sources(A, "reduce", src, dst)
    kept = tuple(1 if n in dims else size for n, size in enumerate(src.shape))
    if dst.shape != kept:
        raise SimulatorError(
            f"T.reduce of {list(src.shape)} over {list(dims)} into {list(dst.shape)}: {list(kept)} is expected"
        )
    if any(src.shape[d] == 0 for d in dims):
        raise SimulatorError(f"T.reduce over no element of {list(src.shape)}")
    value = np.asarray(_reduced(A, src, tuple(dims), reduce_mode)).reshape(kept)
    if value.dtype != dst.dtype:
        value = A.cast(value, A.name_of(dst))
    if not clear:
        value = np.array(getattr(A, _COMBINE[reduce_mode])(dst, value))
    if everything is not None:
        everything[...] = A.poison(A.name_of(dst))
    dst[...] = value


@semantics("npuir.reduce_abs", reads="src dst", writes="src dst")
def reduce_abs(A: Any, src: Any, dst: Any, dims: Any, reduce_mode: str, clear: Any = True) -> None:
    """``abssum`` and ``absmax``: the source itself becomes its magnitudes, which are then reduced."""
    src[...] = A.absolute(src)
    reduce(A, src, dst, dims, reduce_mode.removeprefix("abs"), clear)


@semantics("npuir.cumsum", reads="src", writes="dst")
def cumsum(A: Any, src: Any, dst: Any, dim: int = 0, reverse: Any = False) -> None:
    """Running sums."""
    one_type(A, "cumsum", src, dst)
    part = np.flip(src, dim) if reverse else src
    value = A.cumsum(part, dim)
    put(A, "cumsum", dst, np.flip(value, dim) if reverse else value)


@semantics("npuir.gemm", reads="A B C", writes="C")
def gemm(
    arithmetic: Any, A: Any, B: Any, C: Any, initC: Any = False, a_transpose: bool = False, b_transpose: bool = False
) -> None:
    """``C (+)= A @ B``; ``initC`` forgets what was there, and may be known only when the kernel runs."""
    product(arithmetic, A, B, C, a_transpose, b_transpose, initC)
