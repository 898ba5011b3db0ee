"""Inputs for a kernel that no script calls: drawn by element type from a seed, or given as expressions."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.machine.symbols import extents, symbols_of
from tl2npu.verify.compare import has_exponentials, has_half_sums, has_products, operator_class, rounded
from tl2npu.verify.meanings import Meanings
from tl2npu.verify.settings import UsageError

SYMBOLIC_EXTENT = 256
"""What a symbolic extent is where nobody says: a multiple of the usual tiles."""
_ABOVE, _BELOW = (251, 241, 239, 233), (127, 113, 109, 107)
PRIMES = {
    "wide values": _ABOVE,
    "small whole numbers": _BELOW,
    "values far from 0": _ABOVE,
    "values far below 0": _BELOW,
}
"""What they are in further draws: no multiple of any tile, and no two the same."""

Far = Literal["values far from 0", "values far below 0"]
FAR: tuple[Far, ...] = ("values far from 0", "values far below 0")
Kind = Literal[
    "standard normal", "wide values", "small whole numbers", "the whole range", "infinities", "NaN", Far, "another size"
]
FURTHER: tuple[Kind, ...] = ("wide values", "small whole numbers", "the whole range", "infinities", "NaN", *FAR)
"""What is drawn after the standard normal values."""
CANCELLING = ("the whole range", *FAR)
"""Of which results may be what is left of much larger terms."""
SIZES: Kind = "another size"
"""Standard normal values in tensors of other shapes."""
NO_NUMBERS: dict[str, tuple[float, float]] = {"infinities": (np.inf, -np.inf), "NaN": (np.nan, np.nan)}
"""What stands among standard normal values, by the kind of the draw."""


@dataclass(frozen=True)
class Draw:
    """Which values are drawn. ``prime``: symbolic extents are primes."""

    kind: Kind = "standard normal"
    prime: bool = False


@dataclass(frozen=True)
class Drawn:
    """``tensors`` and ``scalars`` that the call passes, by name; ``symbols``: values of symbolic extents.

    ``said``: what was drawn, for the report.
    """

    tensors: dict[str, np.ndarray]
    scalars: dict[str, Any]
    symbols: dict[Var, Any]
    said: tuple[str, ...]


@dataclass(frozen=True)
class Sizes:
    """How large the numbers of the whole range may be: from two to the power of ``least`` to below that of ``most``.

    The terms of a matrix product must not overflow, nor its sum where that is a half. An exponential of a difference of
    large numbers has no digits. ``far``: the mean of values far from 0; the exponential of it has to outweigh a row of
    thousands, and its square must leave digits for a variance. What is rounded on the way has to be a number of the
    narrower type.
    """

    most: int = 1024
    far: float = 8.0
    least: int = -1074

    @classmethod
    def of(cls, kernel: Kernel) -> Sizes:
        """What a kernel can take."""
        kind = operator_class(kernel)
        least = max((limits_of(narrow).minexp for narrow in rounded(kernel)), default=-1074)
        if has_half_sums(kernel):
            return cls(4, 1.0, least)
        if kind and has_exponentials(kernel):
            return cls(10, 2.0 if has_products(kernel) else 8.0, least)
        return cls(50 if has_products(kernel) else 1024, 8.0, least)


def limits_of(dtype: str) -> Any:
    """What the type says of its numbers."""
    return ml_dtypes.finfo(dtypes.numpy_dtype(dtype))  # type: ignore[no-untyped-call]


def draw(compiled: Any, seed: int, inputs: Mapping[str, str], symbols: Mapping[str, int], what: Draw = Draw()) -> Drawn:
    """Inputs for every parameter that the call does not make.

    Floats are standard normal, or what :func:`numbers` gives. Integers may be indices, so they are drawn from 0 up to
    the smallest extent of any tensor of the kernel (but at most 127, which int8 holds): an index within every axis. In
    further draws some are -1 where the kernel asks for that, and those that are no places are any numbers of a byte, or
    of their type. Booleans are fair coins. A parameter's values depend on ``seed``, its name and the kind of the draw
    only. Raises UsageError for an expression that fails or does not fit, or
    a name that no parameter has.
    """
    params = compiled.kernel.params
    names = {p.name for p in params}
    for option, known in (("--input", inputs), ("--size", symbols)):
        extra = sorted(known.keys() - names - {s.name for s in symbols_of(params)})
        if extra:
            raise UsageError(f"{option} {extra[0]}: {compiled.kernel.name} has no such parameter")
    made = {params[n].name for n in (*compiled.out_idx, *compiled.workspace_idx)}
    said: list[str] = []
    values: dict[Var, Any] = {}
    for symbol in symbols_of(params):
        if any(symbol is param for param in params):
            continue
        usual = PRIMES[what.kind][len(values) % 4] if what.prime and what.kind in PRIMES else SYMBOLIC_EXTENT
        values[symbol] = symbols.get(symbol.name, usual)
        said.append(f"{symbol.name} = {values[symbol]}")
    shapes = {p.name: _shape(p, values) for p in params if isinstance(p, Buffer)}
    bound = min((size for shape in shapes.values() for size in shape if size > 1), default=2)
    bound = min(bound, 128)
    tensors: dict[str, np.ndarray] = {}
    scalars: dict[str, Any] = {}
    meanings = Meanings(compiled.kernel) if what.kind in FURTHER else None
    sizes = Sizes.of(compiled.kernel)
    for param in params:
        name = param.name
        if name in made:
            continue
        rng = generator(seed, name, what.kind)
        if isinstance(param, Var):
            if name in inputs:
                scalars[name] = _evaluated(name, inputs[name], rng, None, param.dtype)
            else:
                scalars[name] = _scalar(param, symbols, rng, bound)
            said.append(f"{name} = {scalars[name]}")
        elif name in inputs:
            tensors[name] = _evaluated(name, inputs[name], rng, shapes[name], param.dtype)
            said.append(f"{name} = {inputs[name]}")
        else:
            free = meanings is not None and name not in meanings.places
            if dtypes.is_float(param.dtype):
                text = str(what.kind)
                sign = far(what.kind, len(tensors))
                tensors[name] = numbers(param.dtype, shapes[name], rng, what.kind, sizes, sign, not tensors)
            else:
                wide = what.kind == "the whole range"
                tensors[name], text = integers(param.dtype, shapes[name], rng, bound, free, wide)
            if meanings is not None and name in meanings.absent and param.dtype.startswith("int"):
                tensors[name][rng.random(shapes[name]) < 0.25] = -1
            said.append(f"{name} {text}")
    return Drawn(tensors, scalars, values, tuple(said))


def _shape(param: Buffer, values: dict[Var, Any]) -> tuple[int, ...]:
    shape = extents(param, values)
    if shape is None:
        raise UsageError(f"the shape of {param.name} depends on a scalar parameter; give the tensor with --input")
    return shape


def generator(seed: int, name: str, kind: Kind) -> np.random.Generator:
    """The random numbers of a parameter."""
    further = [FURTHER.index(kind) + 1] if kind in FURTHER else []
    return np.random.default_rng([seed, zlib.crc32(name.encode()), *further])


def far(kind: Kind, number: int) -> int:
    """The sign of values far from 0 in the n-th tensor of a call; 0 for other kinds.

    Of two tensors one is positive, so that a score is far below 0 as well.
    """
    if kind == "values far below 0":
        return -1
    return (-1 if number % 2 else 1) if kind == "values far from 0" else 0


def numbers(
    dtype: str, shape: tuple[int, ...], rng: Any, kind: Kind, sizes: Sizes = Sizes(), sign: int = 0, first: bool = False
) -> np.ndarray:
    """Floats: standard normal ones, of which two may be infinities or NaN; whole numbers from -3 to 3; a mixture of
    what is easily forgotten: large and tiny numbers, powers of two, halves between whole numbers, zeros, all such that
    their products stay finite; or powers of two and other numbers of every size that the type has, but no subnormal
    ones: elements of any sizes in half of the rows, of one size in the others. With a ``sign`` normal ones far from 0:
    a zero behind the end of a row outweighs the row."""
    normal = rng.standard_normal(shape, np.float32) + sign * np.float32(sizes.far)
    if kind == "small whole numbers":
        normal = np.clip(np.rint(normal * 1.5), -3, 3)
    elif kind == "wide values":
        most = 2 if dtypes.bits(dtype) <= 8 else 5 if dtype == "float16" else 8
        powers = np.ldexp(np.copysign(1.0, normal), rng.integers(-most, most + 1, shape))
        halves = rng.integers(-16, 16, shape) + 0.5
        choices = [powers, normal * 32.0, normal * 32.0, halves, normal * 2.0**-10, np.zeros(shape)]
        normal = np.choose(rng.integers(0, len(choices), shape), choices)
    elif kind == "the whole range":
        limits = limits_of(dtype)
        least, most = max(limits.minexp, sizes.least), min(limits.maxexp, sizes.most)
        row = (*shape[:-1], 1)
        drawn = rng.integers(least, most, shape), rng.integers(least, most, row)
        exponents = np.where(rng.random(row) < 0.5, *drawn)
        powers = np.ldexp(np.copysign(1.0, normal), exponents)
        normal = np.where(rng.random(shape) < 0.5, powers, powers * rng.uniform(1.0, 1.75, shape))
    elif kind in NO_NUMBERS and normal.size:
        places = rng.choice(normal.size, min(2, normal.size), replace=False)
        normal.flat[places] = NO_NUMBERS[kind][: len(places)]
        if first and kind == "infinities" and normal.ndim > 1:  # a masked row, of one factor only
            normal.reshape(-1, shape[-1])[rng.integers(normal.size // shape[-1])] = -np.inf
    return np.asarray(normal, np.float64).astype(dtypes.numpy_dtype(dtype))


def integers(
    dtype: str, shape: tuple[int, ...], rng: Any, bound: int, free: bool, wide: bool
) -> tuple[np.ndarray, str]:
    """Integers, and what to say of them. ``bound``: indices are below that; ``free``: they are no indices. ``wide``:
    numbers of every size, since float32 holds integers of 24 bits only."""
    kind = dtypes.numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(kind), "true or false"
    if free and dtypes.bits(dtype) > 4:
        if wide and dtypes.bits(dtype) > 8:
            limits = np.iinfo(kind)
            numbers = rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
            return numbers >> rng.integers(0, dtypes.bits(dtype) - 1, shape).astype(kind), "integers of every size"
        low = 0 if dtype.startswith("uint") else -128
        return rng.integers(low, low + 256, shape).astype(kind), f"integers {low} to {low + 255}"
    top = min(bound, 8) if dtypes.bits(dtype) == 4 else bound
    return rng.integers(0, top, shape).astype(kind), f"integers 0 to {top - 1}"


def _scalar(param: Var, symbols: Mapping[str, int], rng: Any, bound: int) -> Any:
    if param.name in symbols:
        return symbols[param.name]
    if dtypes.is_float(param.dtype):
        return float(np.float32(rng.standard_normal()))
    return bool(rng.integers(0, 2)) if param.dtype == "bool" else int(rng.integers(1, bound))


def _evaluated(name: str, text: str, rng: Any, shape: tuple[int, ...] | None, dtype: str) -> Any:
    """An expression of the user; a scalar where there is no shape."""
    try:
        value = eval(text, {"__builtins__": {}, "np": np, "rng": rng, "shape": shape})
        if shape is None:
            return np.asarray(value).item()
        return np.array(np.broadcast_to(np.asarray(value), shape).astype(dtypes.numpy_dtype(dtype)))
    except Exception as error:
        raise UsageError(f"--input {name}={text}: {type(error).__name__}: {error}") from None
