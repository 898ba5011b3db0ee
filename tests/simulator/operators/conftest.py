"""Calls the meaning of one operator on NumPy arrays, as a running kernel does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator import operators  # noqa: F401  (registers)
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.ir.stmt import Site
from tl2npu.simulator.machine.access import Access
from tl2npu.simulator.machine.operand import Operand
from tl2npu.simulator.operators.registry import meaning

Call = Callable[..., Any]


class Region:
    """A region of an array for a raw operator: ``memory`` is where the array lives; no extents: a start index."""

    def __init__(self, array: np.ndarray, starts: Any, extents: Any = None, memory: str = "ub") -> None:
        self.array, self.starts, self.extents, self.memory = array, tuple(starts), extents, memory


@pytest.fixture
def call() -> Call:
    """``call("tile.add", dst=..., src0=..., src1=2.0)``; arrays are whole buffers. Registers last for one test."""
    access = Access({n: f"b{n}" for n in range(16)}, [Site("kernel.py", 1)])

    def run(name: str, **arguments: Any) -> Any:
        found = meaning(name, gpu=False)
        assert found is not None, f"{name} has no meaning"
        given: dict[str, Any] = {}
        for number, (key, value) in enumerate(arguments.items()):
            if isinstance(value, np.ndarray) and found.raw:
                value = Region(value, (0,) * value.ndim, value.shape)
            if isinstance(value, Region):
                extents = None if value.extents is None else tuple(value.extents)
                kind = value.array.dtype.name
                value = Operand(access, number, value.array, value.starts, extents, value.memory, kind, 0)
            given[key] = value
        if found.registers:
            given["registers"] = access.registers
        return found.function(Precise(), **given)

    return run


@pytest.fixture
def region() -> type[Region]:
    """The class of regions."""
    return Region
