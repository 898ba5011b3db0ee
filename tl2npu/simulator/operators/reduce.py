"""Reductions of a tile along one axis, Ascend's ``T.reduce_sum``, ``reduce_max``, ``reduce_min`` and ``T.reduce``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.operators.registry import semantics
from tl2npu.simulator.operators.tiles import put, region, same_type

_COMBINE = {"sum": "add", "max": "maximum", "min": "minimum"}


def tile_reduced(A: Any, kind: str, buffer: Any, out: Any, dim: int, clear: Any = True, real_shape: Any = None) -> None:
    """Ascend's reduction: ``dim`` counts the last two axes, indexed ones included.

    ``real_shape``: the rows and columns of a 2-D buffer that count (0: all); the result then fills the beginning of
    ``out``. Without ``clear`` the old ``out`` takes part (reduce_ascend.py:reduce, common.h:reduce_max).
    """
    tile = region(f"reduce_{kind}", buffer, "r")
    given = list(tile.shape)
    if not 1 <= tile.ndim <= 3 or (tile.ndim == 3 and tile.shape[0] != 1):
        raise SimulatorError(f"T.reduce_{kind} handles two axes, not {buffer.name}{given}")
    if tile.ndim == 3:
        tile = tile[0]
    if not -tile.ndim <= dim < tile.ndim:
        raise SimulatorError(f"T.reduce_{kind} over axis {dim} of {buffer.name}{given}")
    if real_shape is not None and tile.ndim == 2:
        real = [int(n) or size for n, size in zip(real_shape, tile.shape, strict=True)]
        if any(not 0 <= n <= size for n, size in zip(real, tile.shape, strict=True)):
            raise SimulatorError(f"T.reduce_{kind}: real_shape {list(real_shape)} of {buffer.name}{given}")
        tile = tile[: real[0], : real[1]]
    if tile.shape[dim] == 0:
        raise SimulatorError(f"T.reduce_{kind} over no element of {buffer.name}{given}")
    value = np.asarray(getattr(A, kind)(tile, dim % tile.ndim)).reshape(-1)
    target = region(f"reduce_{kind}", out, "w" if clear else "rw")
    same_type(f"reduce_{kind}", tile, target)
    if value.size > target.size or (value.size < target.size and real_shape is None):
        raise SimulatorError(f"T.reduce_{kind} of {buffer.name}{given} over axis {dim} into {list(target.shape)}")
    if not clear:
        value = getattr(A, _COMBINE[kind])(target.reshape(-1)[: value.size], value)
    put(f"reduce_{kind}", target, value)


def _ascend(kind: str) -> Callable[..., None]:
    def function(A: Any, buffer: Any, out: Any, dim: int = -1, clear: Any = True, real_shape: Any = None) -> None:
        tile_reduced(A, kind, buffer, out, dim, clear, real_shape)

    return function


for _kind in _COMBINE:
    semantics(f"reduce_{_kind}", reads="buffer out", writes="out", raw=True)(_ascend(_kind))


@semantics("reduce", reads="buffer out", writes="out", raw=True)
def reduce(
    A: Any, buffer: Any, out: Any, reduce_type: str, dim: int = -1, real_shape: Any = None, clear: Any = True
) -> None:
    """Ascend's ``T.reduce(buffer, out, "reduce_max", dim)``."""
    kind = reduce_type.removeprefix("reduce_")
    if kind not in _COMBINE:
        raise UnsupportedOperator(f"T.reduce: no reduction {reduce_type!r}")
    tile_reduced(A, kind, buffer, out, dim, clear, real_shape)
