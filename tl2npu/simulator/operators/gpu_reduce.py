"""Reductions and scans of a GPU tile (tilelang/language/reduce_op.py, scan_op.py).

``max`` and ``min`` give the number where one operand is NaN, unless ``nan_propagate`` is set (measured on a GPU, see
fixtures/gpu_reference/not_a_number). A reducer is an ordinary tile here whose updates are atomic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics

_KINDS = {
    "sum": ("sum", "add"),
    "abssum": ("sum", "add"),
    "max": ("number_max", "number_maximum"),
    "absmax": ("number_max", "number_maximum"),
    "min": ("number_min", "number_minimum"),
}
_BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}


def _reduce(A: Any, kind: str, buffer: Any, out: Any, dim: int, clear: Any, nan_propagate: Any) -> None:
    axis = dim + buffer.ndim if dim < 0 else dim
    if not 0 <= axis < buffer.ndim:
        raise SimulatorError(f"a reduction over axis {dim} of a tile with {buffer.ndim} axes")
    rest = tuple(n for i, n in enumerate(buffer.shape) if i != axis)
    kept = tuple(1 if i == axis else n for i, n in enumerate(buffer.shape))
    if out.shape not in (rest, kept, rest or (1,)):
        raise SimulatorError(
            f"Invalid reduce output shape: {list(buffer.shape)} over axis {dim} into {list(out.shape)}, "
            f"expected {list(rest)} or {list(kept)}"
        )
    if kind in _BITS:
        value = _BITS[kind].reduce(buffer, axis=axis)
        combined = value.reshape(out.shape) if clear else _BITS[kind](out, value.reshape(out.shape))
        out[...] = combined
        return
    whole, pair = _KINDS[kind]
    if nan_propagate:
        whole, pair = whole.removeprefix("number_"), pair.removeprefix("number_")
    part = A.absolute(buffer) if kind.startswith("abs") else buffer
    value = np.asarray(getattr(A, whole)(part, axis)).reshape(out.shape)
    if value.dtype != out.dtype:
        value = A.cast(value, A.name_of(out))
    out[...] = value if clear else getattr(A, pair)(out, value)


def _named(kind: str) -> Callable[..., None]:
    def function(A: Any, buffer: Any, out: Any, dim: Any = -1, clear: Any = True, nan_propagate: Any = False) -> None:
        _reduce(A, kind, buffer, out, dim, clear, nan_propagate)

    return function


for _kind in (*_KINDS, *_BITS):
    _reads = "buffer" if _kind == "abssum" else "buffer out"  # it has no `clear`: what was there never counts
    semantics(f"reduce_{_kind}", reads=_reads, writes="out", gpu=True)(_named(_kind))


@semantics("reduce", reads="buffer out", writes="out", gpu=True)
def reduce(A: Any, buffer: Any, out: Any, reduce_type: Any, dim: Any, clear: Any, nan_propagate: Any = False) -> None:
    """GPU ``T.reduce(buffer, out, "max", dim, clear)``."""
    _reduce(A, reduce_type, buffer, out, dim, clear, nan_propagate)


@semantics("cumsum", reads="src", writes="src dst", gpu=True)
def cumsum(A: Any, src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False) -> None:
    """Running sums; without ``dst`` in place."""
    target = src if dst is None else dst
    part = np.flip(src, dim) if reverse else src
    value = A.cumsum(part, dim)
    target[...] = np.flip(value, dim) if reverse else value


@semantics("cummax", reads="src", writes="src dst", gpu=True)
def cummax(A: Any, src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False) -> None:
    """Running maxima; without ``dst`` in place."""
    target = src if dst is None else dst
    part = np.moveaxis(np.flip(src, dim) if reverse else src, dim, 0)
    rows = [part[0]]
    for row in part[1:]:
        rows.append(A.number_maximum(rows[-1], row))
    value = np.moveaxis(np.stack(rows), 0, dim)
    target[...] = np.flip(value, dim) if reverse else value


_LOWEST: dict[str, Callable[[Any], Any]] = {
    "sum": lambda kind: 0,
    "max": lambda kind: _limits(kind)[0],
    "min": lambda kind: _limits(kind)[1],
    "bitand": lambda kind: -1 if kind.kind == "i" else np.iinfo(kind).max,
    "bitor": lambda kind: 0,
    "bitxor": lambda kind: 0,
}


def _limits(kind: Any) -> tuple[Any, Any]:
    if kind.kind in "iu":
        return np.iinfo(kind).min, np.iinfo(kind).max
    return -np.inf, np.inf


@semantics("reducer_init", writes="reducer", gpu=True)
def reducer_init(A: Any, reducer: Any, init: Any = None, op: str = "sum") -> None:
    """Opens a reducer with the identity of its operation, or with a value that counts once."""
    start = _LOWEST[op](reducer.dtype) if init is None else init
    reducer[...] = start if hasattr(start, "dtype") else A.literal(start, reducer)


@semantics("finalize_reducer", reads="reducer", writes="dst", gpu=True)
def finalize_reducer(A: Any, reducer: Any, dst: Any = None) -> None:
    """Closes a reducer; the result goes into ``dst``, or stays where it is."""
    if dst is not None:
        dst[...] = reducer.reshape(dst.shape)
