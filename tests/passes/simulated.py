"""Runs the kernels of tests on the simulator, before and after a migration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.simulator.kernels import load
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.lowering.lower import ACTUAL
from tl2npu.simulator.machine.execute import Executable


def run(
    text: str,
    inputs: Mapping[str, np.ndarray],
    factory: str = "factory",
    args: tuple[Any, ...] = (),
    reading: str = ACTUAL,
) -> dict[str, np.ndarray]:
    """Every tensor of the kernel after all blocks have run; tensors that are no inputs start unwritten (NaN)."""
    made = load(text)[factory](*args)
    executable = Executable(made.kernel, Precise(), reading)
    arrays = {}
    tensors = {}
    for param in made.kernel.params:
        assert isinstance(param, Buffer)
        tensors[param.name] = arrays[param.number] = executable.blank(param, {})
        if param.name in inputs:
            given = inputs[param.name]
            arrays[param.number][...] = given[tuple(slice(size) for size in arrays[param.number].shape)]
    executable.run(arrays, {})
    return tensors
