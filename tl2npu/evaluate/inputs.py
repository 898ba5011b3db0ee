"""What a kernel is evaluated on: values that tell kernels apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import libcst as cst
import numpy as np

from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import Tile
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Kernel, Loop, Memory
from tl2npu.source.tree import nodes_of

_BOUNDARIES = re.compile(r"seqlens|offset|indptr|starts?$|ends?$|^cu_|padded", re.IGNORECASE)
_COUNTS = re.compile(r"sizes?$|lens?$|lengths?$|counts?$|^num_", re.IGNORECASE)
_PADDED = 0.15
_FEW = 4
"""Indices of what nobody knows: most are small enough."""
_LARGE, _FACTOR = 0.125, 96.0
"""How many floats are large, and by what: `exp` overflows where no maximum was taken off."""
_PERIOD = 65_521
"""Of large tensors: a prime, so that no two rows are alike."""
PLAIN = 1
ATTEMPTS = (0, PLAIN, 2, 3)
"""At first some floats are large. Integers are drawn in their whole range, then from 0 and 1, then they are 0; counts
get smaller: tables may be valid in few ways."""


@dataclass(frozen=True)
class Range:
    """What integers may be: ``limit`` is the extent of the smallest axis that elements of another tensor are an index
    of, 0 if there is none; ``longest`` the longest first axis, ``widest`` the longest of all;
    ``padded``: -1 stands for no index; ``extents``: parameters that the grid or a loop counts up to."""

    limit: int
    longest: int
    widest: int
    padded: bool
    extents: Set[str]


def range_of(kernel: Kernel, tensors: Mapping[str, Tile]) -> Range:
    """What the kernel makes of its integers."""
    found: list[int] = []
    for stmt in kernel.walk():
        for access in accesses(stmt):
            operand = access.operand
            tensor = tensors.get(operand.buffer.name)
            if operand.buffer.memory is not Memory.GM or tensor is None:
                continue
            for axis, dim in enumerate(operand.dims or ()):
                if dim.loads and axis < len(tensor.shape):
                    found.append(tensor.shape[axis])
    longest = max((tensor.shape[0] for tensor in tensors.values() if tensor.shape), default=1)
    widest = max((size for tensor in tensors.values() for size in tensor.shape), default=1)
    padded = any(map(_asks_for_one, nodes_of(kernel.node.body, cst.Comparison)))
    loops = [item.extent for stmt in kernel.walk() if isinstance(stmt, Loop) for item in stmt.ranges]
    extents = {name for one in (*loops, *(kernel.launch.grid if kernel.launch else ())) for name in one.names}
    return Range(min(found, default=0), longest, widest, padded, extents)


def _asks_for_one(node: cst.Comparison) -> bool:
    """``index >= 0``, ``index != -1``: how kernels ask whether an index is one."""
    against = [target.comparator for target in node.comparisons]
    return any(
        (isinstance(one, cst.Integer) and one.value == "0")
        or (isinstance(one, cst.UnaryOperation) and isinstance(one.operator, cst.Minus))
        for one in against
    )


def draw(tensors: Mapping[str, Tile], scalars: Mapping[str, str], known: Range, attempt: int) -> dict[str, Any]:
    """Fill the tensors, and give the other parameters values; ``attempt`` is one of :data:`ATTEMPTS`."""
    rng = np.random.default_rng(1)
    for name, tensor in tensors.items():
        shape, kind = tensor.shape, tensor.data.dtype
        if kind == np.bool_:
            tensor.data = rng.random(shape) < 0.6
        elif kind == np.float64:
            values_ = rng.standard_normal(min(tensor.data.size, _PERIOD)) * 0.75 + 0.125
            if attempt < PLAIN:
                values_[rng.random(values_.size) < _LARGE] *= _FACTOR
            tensor.data = values_.reshape(shape) if values_.size == tensor.data.size else np.resize(values_, shape)
        elif arithmetic.bits(tensor.dtype) == 8:
            tensor.data = rng.integers(0 if kind.kind == "u" else -8, 120, shape).astype(kind)
        else:
            tensor.data = np.asarray(_integers(name, shape, known, rng, attempt)).astype(kind)
    values: dict[str, Any] = {}
    for name, dtype in scalars.items():
        number = float(rng.uniform(0.3, 0.9)) if not dtype or arithmetic.is_float(dtype) else 3
        values[name] = known.longest if name in known.extents else number
    return values


def _integers(name: str, shape: tuple[int, ...], known: Range, rng: np.random.Generator, attempt: int) -> Any:
    if len(shape) == 1 and _COUNTS.search(name):
        most = max(known.longest // max(shape[0], 1), 1)
        bounds = (known.widest, 2 * known.widest), (known.widest // 2, known.widest), (1, most)
        low, high = bounds[max(attempt, PLAIN) - 1]
        found = rng.integers(low, high + 1, shape)
        found[1::2] = rng.integers(1, max(low // 4, 1) + 1, found[1::2].shape)  # a part of a tile
        return found
    if attempt > PLAIN:
        return rng.integers(0, 4 - attempt, shape)
    if len(shape) == 1 and _BOUNDARIES.search(name):
        found = np.sort(rng.integers(0, known.longest + 1, shape))
        found[:1], found[1:][-1:] = 0, known.longest
        return found
    top = known.limit or _FEW
    indices = np.resize(rng.permutation(top), shape)
    return np.where(rng.random(shape) < _PADDED, -1, indices) if known.padded and known.limit else indices
