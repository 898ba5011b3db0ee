"""A launch of a Triton kernel once more, on tensors of its own. Imported when Triton has been."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tl2npu.interpreter.execution import Launching
from tl2npu.interpreter.launch import Launch
from tl2npu.interpreter.memory import Memory, bytes_at


def can_be_repeated(launching: Launching) -> bool:
    """Whether all that it is given are tensors of torch, numbers and constants: no descriptors, no lists of tensors."""
    given = [value for name, value in launching.values.items() if name not in launching.constexprs]
    return all(value is None or isinstance(value, (torch.Tensor, bool, int, float)) for value in given)


def again(
    launching: Launching,
    launch: Launch,
    shapes: Mapping[str, tuple[int, ...]],
    scalars: Mapping[str, Any],
    grid: tuple[int, int, int],
    filled: Callable[[str, tuple[int, ...]], np.ndarray],
) -> Launching:
    """The launch with other scalars and another grid, on new memory.

    ``launch`` is what was recorded of it. A tensor that is in ``shapes`` gets memory of that size, dense; the others
    lie in copies of their storages as they did. ``filled`` gives the elements of each tensor, by its parameter and
    shape. A tensor that was passed twice stays one.
    """
    storages: dict[int, torch.Tensor] = {}
    made: dict[Any, torch.Tensor] = {}
    values = {**launching.values, **scalars}
    for name, argument in launch.tensors.items():
        given = launching.values[name]
        key = argument, shapes.get(name)
        if key not in made:
            if name in shapes:
                made[key] = torch.empty(shapes[name], dtype=given.dtype)
            else:
                if argument.storage not in storages:
                    storages[argument.storage] = torch.from_numpy(launch.before[argument.storage].copy())
                memory = storages[argument.storage].untyped_storage()
                empty = torch.empty(0, dtype=given.dtype)
                made[key] = empty.set_(memory, argument.offset, argument.shape, argument.strides)
            storage = made[key].untyped_storage()
            view = replace(argument, shape=tuple(made[key].shape), strides=made[key].stride())
            if storage.nbytes():
                elements = view.of(bytes_at(storage.data_ptr(), storage.nbytes()))
                elements[...] = filled(name, view.shape)
        values[name] = made[key]
    return replace(launching, values=values, grid=grid, memory=Memory())
