"""Runs the kernels of tests on the simulator, before and after a migration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tests.simulator.kernels import load
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.lowering.lower import ACTUAL
from tl2npu.simulator.machine.execute import Executable


@lru_cache(maxsize=2)
def made(text: str, factory: str, args: tuple[Any, ...]) -> Kernel:
    """The kernel that a text makes; the same for both readings, as verify has it."""
    kernel = load(text)[factory](*args).kernel
    assert isinstance(kernel, Kernel)
    return kernel


def run(
    text: str,
    inputs: Mapping[str, np.ndarray],
    factory: str = "factory",
    args: tuple[Any, ...] = (),
    reading: str = ACTUAL,
) -> dict[str, np.ndarray]:
    """Every tensor of the kernel after all blocks have run; tensors that are no inputs start unwritten (NaN)."""
    kernel = made(text, factory, args)
    executable = Executable(kernel, Precise(), reading)
    arrays = {}
    tensors = {}
    for param in kernel.params:
        assert isinstance(param, Buffer)
        tensors[param.name] = arrays[param.number] = executable.blank(param, {})
        if param.name in inputs:
            given = inputs[param.name]
            arrays[param.number][...] = given[tuple(slice(size) for size in arrays[param.number].shape)]
    executable.run(arrays, {})
    return tensors
