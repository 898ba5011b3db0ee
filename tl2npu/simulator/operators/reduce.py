"""Reductions of a tile along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.operators.registry import semantics

_COMBINE = {"sum": "add", "max": "maximum", "min": "minimum"}


def reduced(A: Any, kind: str, buffer: Any, out: Any, dim: int, clear: Any, real_shape: Any = None) -> None:
    """``out (op)= kind(buffer, dim)``; ``out`` may keep or drop the axis. ``real_shape``: the part that counts."""
    part = buffer
    if real_shape is not None and buffer.ndim == 2:
        part = buffer[tuple(slice(0, int(n) or size) for n, size in zip(real_shape, buffer.shape, strict=True))]
    axis = dim + part.ndim if dim < 0 else dim
    if not 0 <= axis < part.ndim:
        raise SimulatorError(f"a reduction over axis {dim} of a tile with {part.ndim} axes")
    value = getattr(A, kind)(part, axis)
    target = out
    if part is not buffer:
        lead = tuple(slice(0, n) for n in value.shape)
        flat = out.reshape(tuple(n for i, n in enumerate(buffer.shape) if i != axis))
        target = flat[lead]
    elif value.size != out.size:
        raise SimulatorError(f"a reduction of {list(buffer.shape)} over axis {dim} into {list(out.shape)}")
    value = np.asarray(value).reshape(target.shape)
    target[...] = value if clear else getattr(A, _COMBINE[kind])(target, value)


def _ascend(kind: str) -> Callable[..., None]:
    def function(A: Any, buffer: Any, out: Any, dim: int = -1, clear: Any = True, real_shape: Any = None) -> None:
        reduced(A, kind, buffer, out, dim, clear, real_shape)

    return function


for _kind in _COMBINE:
    semantics(f"reduce_{_kind}", reads="buffer out", writes="out")(_ascend(_kind))


@semantics("reduce", reads="buffer out", writes="out")
def reduce(
    A: Any, buffer: Any, out: Any, reduce_type: str, dim: int = -1, real_shape: Any = None, clear: Any = True
) -> None:
    """Ascend's ``T.reduce(buffer, out, "reduce_max", dim)``."""
    reduced(A, reduce_type.removeprefix("reduce_"), buffer, out, dim, clear, real_shape)
