"""What a kernel is evaluated on: values that tell kernels apart."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.values import Tile
from tl2npu.kernel.access import accesses
from tl2npu.kernel.model import Kernel, Memory

_BOUNDARIES = re.compile(r"seqlens|offset|indptr|starts?$|ends?$|cu_", re.IGNORECASE)


def index_limit(kernel: Kernel, tensors: Mapping[str, Tile]) -> int:
    """The extent of the smallest axis that elements of another tensor or tile are an index of; 0 if there is none."""
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
    return min(found, default=0)


def draw(tensors: Mapping[str, Tile], scalars: Mapping[str, str], limit: int, seed: int) -> dict[str, object]:
    """Fill the tensors, and give the other parameters values."""
    rng = np.random.default_rng(seed)
    for name, tensor in tensors.items():
        shape, kind = tensor.shape, tensor.data.dtype
        if kind == np.bool_:
            tensor.data = rng.random(shape) < 0.6
        elif kind == np.float64:
            tensor.data = rng.standard_normal(shape) * 0.75 + 0.125
        elif arithmetic.bits(tensor.dtype) == 8:
            tensor.data = rng.integers(0 if tensor.dtype.startswith("u") else -8, 120, shape)
        elif len(shape) == 1 and _BOUNDARIES.search(name):
            top = limit or 8
            tensor.data = np.sort(rng.integers(0, top + 1, shape))
            tensor.data[:1] = 0
            tensor.data[-1:] = top
        else:
            top = limit or 8
            tensor.data = np.resize(rng.permutation(top), shape) if top > 1 else np.zeros(shape, np.int64)
    values: dict[str, object] = {}
    for name, dtype in scalars.items():
        values[name] = float(rng.uniform(0.3, 0.9)) if not dtype or arithmetic.is_float(dtype) else 3
    return values
